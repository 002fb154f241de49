package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// ddp is DistributedDataParallel: gradients are copied into buckets that are
// reduced, or are views of the buckets. Its memory does not depend on the number
// of ranks.
type ddp struct {
	run     *run
	view    bool // gradient_as_bucket_view
	buckets []*eager.Tensor
	home    map[*eager.Tensor]int // parameter -> its bucket
	ready   []*eager.Tensor       // parameters in the order of their first gradients
	rebuilt bool
}

const (
	firstBucket = 1 << 20
	bucketCap   = 25 << 20
	// broadcastCap is how much is broadcast at a time when the model is wrapped.
	broadcastCap = 250 << 20
	noCap        = 1 << 62
)

// newDDP is the constructor: ranks compare the shapes of parameters, take over
// the values of rank 0, and make a bucket for all gradients of a type.
func newDDP(r *run) *ddp {
	d := &ddp{run: r, view: r.job.Shard.BucketView, home: map[*eager.Tensor]int{}}
	kind := r.machine.Kind(ledger.Collective)
	defer r.machine.Kind(kind)
	d.verify(int64(r.job.Shard.DDP))
	var state []*eager.Tensor
	for _, p := range r.params {
		if !p.Tied {
			state = append(state, p.Tensor)
		}
	}
	for _, p := range r.adapters {
		state = append(state, p.Tensor)
	}
	d.broadcast(append(state, r.buffers...))
	groups := assign(r.trained, noCap, noCap)
	slices.Reverse(groups)
	d.allocate(groups)
	for _, p := range r.trained {
		p.OnGrad(func() { d.arrived(p) })
	}
	return d
}

// verify is _verify_param_shape_across_processes: the number of parameters of
// all ranks, then sizes and strides.
func (d *ddp) verify(ranks int64) {
	m := d.run.machine
	own := m.Empty("to", eager.Int64, 1)
	var all []*eager.Tensor
	for range ranks {
		all = append(all, m.Empty("empty_like", eager.Int64, 1))
	}
	m.Empty("all_gather", eager.Int64, ranks).Drop()
	var numbers int64
	for _, p := range d.run.trained {
		numbers += 2 * int64(p.Dims())
	}
	m.Empty("to", eager.Int64, numbers).Drop()
	eager.Drop(all...)
	own.Drop()
}

// broadcast is broadcast_coalesced: tensors of a type are joined up to a size,
// and at most two such buffers are under way.
func (d *ddp) broadcast(ts []*eager.Tensor) {
	var flying []*eager.Tensor
	for _, g := range assign(ts, broadcastCap, broadcastCap) {
		if len(flying) == 2 {
			flying[0].Drop()
			flying = flying[1:]
		}
		flat := g[0].Keep()
		if len(g) > 1 {
			flat.Drop()
			flat = d.run.machine.Empty("flatten_dense_tensors", g[0].DType(), elements(g))
		}
		flying = append(flying, flat)
	}
	eager.Drop(flying...)
}

// forward is what the wrapper does before the model's forward pass.
func (d *ddp) forward() {
	kind := d.run.machine.Kind(ledger.Collective)
	defer d.run.machine.Kind(kind)
	if !d.rebuilt && len(d.ready) > 0 {
		d.rebuild()
	}
	d.broadcast(d.run.buffers)
}

// rebuild makes the buckets anew, in the order in which gradients came.
func (d *ddp) rebuild() {
	m := d.run.machine
	d.rebuilt = true
	groups := assign(d.ready, firstBucket, bucketCap)
	indices := m.Empty("bucket indices", eager.Int32, int64(len(d.ready))+1)
	sizes := m.Empty("bucket sizes", eager.Int32, int64(len(groups)))
	eager.Drop(sizes, indices)
	// The process group keeps what its last collective was called with until a
	// thread that looks ten times a second saw that it is done, and then until the
	// next collective. Of 17 runs 11 had given the old buckets back by now.
	for _, b := range d.buckets {
		m.Ledger.Uncertain = append(m.Ledger.Uncertain, ledger.Term{
			Name: "DDP: NCCL's watchdog may give the first step's bucket back later", High: b.Bytes(), Reserved: true,
		})
		b.Drop()
	}
	d.allocate(groups)
}

func (d *ddp) allocate(groups [][]*eager.Tensor) {
	kind := d.run.machine.Kind(ledger.Collective)
	if d.view {
		d.run.machine.Kind(ledger.Gradient)
	}
	defer d.run.machine.Kind(kind)
	d.buckets = nil
	for i, g := range groups {
		b := d.run.machine.Empty("bucket", g[0].DType(), elements(g))
		d.buckets = append(d.buckets, b)
		for _, p := range g {
			d.home[p] = i
			if d.view && p.Grad() != nil {
				p.SetGrad(d.run.machine.ViewInto(b, p))
			}
		}
	}
}

// arrived is called when a gradient is there: it goes into its bucket.
func (d *ddp) arrived(p *eager.Tensor) {
	if !d.rebuilt {
		d.ready = append(d.ready, p)
	}
	if d.view {
		p.SetGrad(d.run.machine.ViewInto(d.buckets[d.home[p]], p))
	}
}

// assign is compute_bucket_assignment_by_size: tensors of a type fill buckets
// that are closed once they have reached their size. The first bucket of a type
// has a size of its own.
func assign(ts []*eager.Tensor, first, others int64) [][]*eager.Tensor {
	type open struct {
		ts    []*eager.Tensor
		bytes int64
		limit int64
	}
	var out [][]*eager.Tensor
	var order []eager.DType
	buckets := map[eager.DType]*open{}
	for _, t := range ts {
		b := buckets[t.DType()]
		if b == nil {
			b = &open{limit: first}
			buckets[t.DType()] = b
			order = append(order, t.DType())
		}
		b.ts = append(b.ts, t)
		if b.bytes += t.Bytes(); b.bytes >= b.limit {
			out = append(out, b.ts)
			*b = open{limit: others}
		}
	}
	for _, d := range order {
		if b := buckets[d]; len(b.ts) > 0 {
			out = append(out, b.ts)
		}
	}
	return out
}

func elements(ts []*eager.Tensor) int64 {
	var n int64
	for _, t := range ts {
		n += t.Elements()
	}
	return n
}
