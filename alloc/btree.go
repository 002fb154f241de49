package alloc

// forest holds B+ trees of (key, block) pairs: the overflow of size classes
// with more than one free block. Nodes live in one slice and name each other
// by index; a tree is named by its root, 0 being the empty tree.
//
// A node's keys are sorted and padded with padKey, so that a search is five
// comparisons without branches. In an inner node keys[i] is a lower bound of
// everything under kids[i], and above everything under kids[i-1]. Nodes are
// split when full and dropped when empty, never merged: a tree that shrinks
// keeps its shape and fills again.
type forest struct {
	nodes []node
	spare uint32
}

const (
	fanout = 31 // one less than the array, so that the search ends on padding
	padKey = ^uint64(0)
)

type node struct {
	keys [fanout + 1]uint64
	kids [fanout + 1]uint32 // blocks in a leaf, nodes above
	n    int32
	leaf bool
}

// rank is the number of keys below key.
func (nd *node) rank(key uint64) int {
	i := 0
	if nd.keys[15] < key {
		i = 16
	}
	if nd.keys[(i+7)&31] < key {
		i += 8
	}
	if nd.keys[(i+3)&31] < key {
		i += 4
	}
	if nd.keys[(i+1)&31] < key {
		i += 2
	}
	if nd.keys[i&31] < key {
		i++
	}
	return i
}

// child is the position of the subtree that key belongs to.
func (nd *node) child(key uint64) int { return max(nd.rank(key+1)-1, 0) }

func (nd *node) put(i int, key uint64, kid uint32) {
	copy(nd.keys[i+1:nd.n+1], nd.keys[i:nd.n])
	copy(nd.kids[i+1:nd.n+1], nd.kids[i:nd.n])
	nd.keys[i], nd.kids[i] = key, kid
	nd.n++
}

func (nd *node) cut(i int) {
	nd.n--
	copy(nd.keys[i:nd.n], nd.keys[i+1:nd.n+1])
	copy(nd.kids[i:nd.n], nd.kids[i+1:nd.n+1])
	nd.keys[nd.n] = padKey
}

func (f *forest) newNode(leaf bool) uint32 {
	id := f.spare
	if id != 0 {
		f.spare = f.nodes[id].kids[0]
	} else {
		if len(f.nodes) == 0 {
			f.nodes = append(f.nodes, node{}) // index 0 is no node
		}
		f.nodes = append(f.nodes, node{})
		id = uint32(len(f.nodes) - 1)
	}
	nd := &f.nodes[id]
	nd.n, nd.leaf = 0, leaf
	for i := range nd.keys {
		nd.keys[i] = padKey
	}
	return id
}

func (f *forest) dropNode(id uint32) {
	f.nodes[id].kids[0] = f.spare
	f.spare = id
}

// splitKid moves the upper half of the full child i of parent into a new
// child i+1.
func (f *forest) splitKid(parent uint32, i int) {
	left := f.nodes[parent].kids[i]
	right := f.newNode(f.nodes[left].leaf)
	l, r := &f.nodes[left], &f.nodes[right]
	half := l.n / 2
	r.n = int32(copy(r.keys[:], l.keys[half:l.n]))
	copy(r.kids[:], l.kids[half:l.n])
	for j := half; j < l.n; j++ {
		l.keys[j] = padKey
	}
	l.n = half
	f.nodes[parent].put(i+1, r.keys[0], right)
}

// insert adds a key that is not in the tree and returns the root.
func (f *forest) insert(root uint32, key uint64, id blockID) uint32 {
	if root == 0 {
		root = f.newNode(true)
	}
	if f.nodes[root].n == fanout {
		top := f.newNode(false)
		f.nodes[top].put(0, f.nodes[root].keys[0], root)
		root = top
		f.splitKid(root, 0)
	}
	at := root
	for !f.nodes[at].leaf {
		nd := &f.nodes[at]
		i := nd.child(key)
		if f.nodes[nd.kids[i]].n == fanout {
			f.splitKid(at, i)
			nd = &f.nodes[at]
			i = nd.child(key)
		}
		if key < nd.keys[i] {
			nd.keys[i] = key
		}
		at = nd.kids[i]
	}
	leaf := &f.nodes[at]
	leaf.put(leaf.rank(key), key, uint32(id))
	return root
}

// maxDepth bounds the height of a tree: nodes split at 31 entries into halves
// of at least 15, so ten levels hold more keys than a blockID can count.
const maxDepth = 12

// remove deletes a key that is in the tree and returns the root.
func (f *forest) remove(root uint32, key uint64) uint32 {
	var path [maxDepth]struct {
		node uint32
		kid  int
	}
	depth := 0
	at := root
	for !f.nodes[at].leaf {
		i := f.nodes[at].child(key)
		path[depth].node, path[depth].kid = at, i
		depth++
		at = f.nodes[at].kids[i]
	}
	leaf := &f.nodes[at]
	leaf.cut(leaf.rank(key))
	for f.nodes[at].n == 0 {
		f.dropNode(at)
		if depth == 0 {
			return 0
		}
		depth--
		at = path[depth].node
		f.nodes[at].cut(path[depth].kid)
	}
	for !f.nodes[root].leaf && f.nodes[root].n == 1 {
		only := f.nodes[root].kids[0]
		f.dropNode(root)
		root = only
	}
	return root
}

// first returns the smallest key of a tree that is not empty.
func (f *forest) first(root uint32) (uint64, blockID) {
	for !f.nodes[root].leaf {
		root = f.nodes[root].kids[0]
	}
	nd := &f.nodes[root]
	return nd.keys[0], blockID(nd.kids[0])
}

// last returns the block with the largest key of a tree that is not empty.
func (f *forest) last(root uint32) blockID {
	for {
		nd := &f.nodes[root]
		kid := nd.kids[nd.n-1]
		if nd.leaf {
			return blockID(kid)
		}
		root = kid
	}
}

// ceil returns the block with the smallest key that is not below key.
func (f *forest) ceil(root uint32, key uint64) blockID {
	var right uint32 // the subtree right of the path, nearest to it
	for root != 0 {
		nd := &f.nodes[root]
		if nd.leaf {
			if i := nd.rank(key); i < int(nd.n) {
				return blockID(nd.kids[i])
			}
			break
		}
		i := nd.child(key)
		if i+1 < int(nd.n) {
			right = nd.kids[i+1]
		}
		root = nd.kids[i]
	}
	if right == 0 {
		return noBlock
	}
	_, id := f.first(right)
	return id
}

// below returns the block with the largest key below key.
func (f *forest) below(root uint32, key uint64) blockID {
	var left uint32 // the subtree left of the path, nearest to it
	for root != 0 {
		nd := &f.nodes[root]
		if nd.leaf {
			if i := nd.rank(key); i > 0 {
				return blockID(nd.kids[i-1])
			}
			break
		}
		i := max(nd.rank(key)-1, 0)
		if i > 0 {
			left = nd.kids[i-1]
		}
		root = nd.kids[i]
	}
	if left == 0 {
		return noBlock
	}
	return f.last(left)
}

// each calls fn for every block of the tree in order of keys.
func (f *forest) each(root uint32, fn func(blockID)) {
	if root == 0 {
		return
	}
	nd := &f.nodes[root]
	for i := range int(nd.n) {
		if nd.leaf {
			fn(blockID(nd.kids[i]))
		} else {
			f.each(nd.kids[i], fn)
		}
	}
}
