package serve

import (
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// layerKind is how a layer's part of the cache grows.
type layerKind int

const (
	full    layerKind = iota // with every token
	sliding                  // up to its window
	state                    // not at all
)

// pages says how one rank's cache is laid out: layers share blocks in groups, and
// all blocks have one size.
type pages struct {
	version   Version
	blockSize int64 // tokens of a block
	page      int64 // bytes of one layer's block
	perGroup  int64 // layers whose pages make up a block
	window    int64
	// groups has one entry per group of layers.
	groups []layerKind
	// perState is how many blocks a request holds in each group of states.
	perState int64
	growing  int64 // bytes that a token adds
}

// defaultBlock is vLLM's block on CUDA.
const defaultBlock = 16

// layOut finds the groups and blocks of a model's cache.
func (r *Request) layOut() pages {
	m, v := r.Model, r.Version
	p := pages{version: v, blockSize: r.BlockSize, window: int64(m.SlidingWindow), perState: 1}
	if p.blockSize == 0 {
		p.blockSize = defaultBlock
	}
	var count [3]int64
	for i := range m.Layers {
		count[kindOf(m, i)]++
	}
	token := r.tokenBytes()
	if n := r.stateBytes(); n > 0 {
		// The block grows until a page of tokens holds a state.
		p.blockSize *= max(ceil(n, p.blockSize*token), 1)
		if r.PrefixCaching && v.since(15, 0) {
			p.perState = 2
		}
	}
	if !v.hybrid() {
		count[full] += count[sliding]
		count[sliding] = 0
	}
	p.page = p.blockSize * token
	if p.growing = count[full] * token; p.growing == 0 {
		p.growing = count[sliding] * token // up to the window
	}
	p.group(count)
	return p
}

func kindOf(m *model.Model, i int) layerKind {
	switch {
	case len(m.LayerTypes) > i && m.LayerTypes[i] == model.LinearAttention:
		return state
	case m.Window(i) > 0:
		return sliding
	}
	return full
}

// group cuts the layers of each kind into groups of one size: the fewest layers
// of a kind, or the most where that is not much more.
func (p *pages) group(count [3]int64) {
	var least, most int64
	for _, n := range count {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
		most = max(most, n)
	}
	p.perGroup = least
	if float64(most) < float64(least)*p.nearly() {
		p.perGroup = most
	}
	for kind, n := range count {
		for range ceil(n, p.perGroup) {
			p.groups = append(p.groups, layerKind(kind))
		}
	}
}

// nearly is the ratio of layers below which the larger kind gives the size.
func (p *pages) nearly() float64 {
	switch {
	case p.version.since(18, 0):
		return 1.5
	case p.version.since(12, 0):
		return 1.25
	}
	return 1
}

// blockBytes is what a block takes in all layers of its group.
func (p *pages) blockBytes() int64 { return p.page * p.perGroup }

// blocks is how many there are in so much memory.
func (p *pages) blocks(available int64) int64 { return max(available, 0) / p.blockBytes() }

// perRequest is how many blocks a request of a length holds at most.
func (p *pages) perRequest(length, batched int64) int64 {
	var n int64
	for _, g := range p.groups {
		switch g {
		case full:
			n += ceil(length, p.blockSize)
		case sliding:
			n += ceil(min(p.window-1+batched, length), p.blockSize) + 1
		case state:
			n += p.perState
		}
	}
	return n
}

// concurrency is how many requests of a length fit.
func (p *pages) concurrency(blocks, length, batched int64) float64 {
	if !p.version.hybrid() {
		return float64(blocks*p.blockSize) / float64(length)
	}
	return float64(blocks) / float64(p.perRequest(length, batched))
}

// tokens is the size that vLLM prints. Its meaning for several groups changed
// with 0.21: before, the blocks of one group.
func (p *pages) tokens(blocks, length, batched int64) int64 {
	if p.version.since(21, 0) {
		return int64(p.concurrency(blocks, length, batched) * float64(length))
	}
	return blocks / int64(len(p.groups)) * p.blockSize
}

// tokenBytes is what one layer keeps of a token on one rank.
func (r *Request) tokenBytes() int64 {
	m := r.Model
	size := r.cacheSize()
	if m.MLA != nil { // the compressed part and the rotary one, on every rank
		return int64(m.MLA.KVRank+m.MLA.RopeDim) * size
	}
	return 2 * split(int64(m.KVHeads), r.TP) * int64(m.HeadDim) * size
}

// stateBytes is what one linear attention layer keeps of a request on one rank:
// the taps of the convolution in the model's type, the state in fp32.
func (r *Request) stateBytes() int64 {
	l := r.Model.Linear
	if l == nil {
		return 0
	}
	channels := (2*int64(l.KeyHeads*l.KeyDim) + int64(l.ValueHeads*l.ValueDim)) / r.TP
	conv := channels * int64(l.ConvKernel-1) * r.dtype().Size()
	return conv + int64(l.ValueHeads)/r.TP*int64(l.KeyDim*l.ValueDim)*4
}

// cacheSize is the bytes of a number in the cache.
func (r *Request) cacheSize() int64 {
	if r.KVType == "fp8" {
		return 1
	}
	return r.dtype().Size()
}

// split is one rank's share of some heads; every rank has one at least.
func split(n, ranks int64) int64 { return max(n/ranks, 1) }

func ceil(a, b int64) int64 { return (a + b - 1) / b }
