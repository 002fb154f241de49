package findings

// Category returns what one block is for. Blocks are numbered as in
// timeline.Lives: those older than the trace first, then one for each alloc
// event, in order.
func (a *Analysis) Category(block int) (Category, Confidence) {
	a.once.Do(func() { a.categories = newCategories(a) })
	v := a.categories.of(&a.lives.blocks[block])
	return v.category, v.confidence
}

// Blocks is the number of blocks.
func (a *Analysis) Blocks() int { return len(a.lives.blocks) }

// Categories are all categories, in the order in which memory is mostly there.
func Categories() []Category {
	return []Category{Parameters, Gradients, OptimizerState, Activations, Temporaries, Workspace, Unknown}
}
