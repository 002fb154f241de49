package findings

import "github.com/ashlar-mem/ashlar/internal/timeline"

// Category returns what one block is for. Blocks are numbered as in
// timeline.Lives: those older than the trace first, then one for each alloc
// event, in order.
func (a *Analysis) Category(block int) (Category, Confidence) {
	a.once.Do(func() { a.categories = newCategories(a) })
	b := a.lives.block(block)
	v := a.categories.of(&b)
	return v.category, v.confidence
}

// Life returns what a life is for. Of lives that only their end shows nothing is
// known, and the analysis does not have them.
func (a *Analysis) Life(lives *timeline.Lives, i int) (Category, Confidence) {
	block := i
	if i >= lives.Older-lives.Found {
		block -= lives.Found
	}
	found := i >= lives.Older-lives.Found && i < lives.Older
	if found || a.Blocks()+lives.Found != lives.Len() { // the second never, or the numbers would be mixed up
		return Unknown, Guess
	}
	return a.Category(block)
}

// Blocks is the number of blocks.
func (a *Analysis) Blocks() int { return a.lives.len() }

// Categories are all categories, in the order in which memory is mostly there.
func Categories() []Category {
	return []Category{Parameters, Gradients, OptimizerState, Activations, Temporaries, Workspace, Unknown}
}
