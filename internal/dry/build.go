package dry

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Run is a recording as a ledger: with what kernels allocate beside their
// outputs.
type Run struct {
	*Recording
	Ledger *ledger.Ledger
	GPU    int // the one that the ledger is of
	Steps  int // that were done
	// Unknown are ops whose workspace is not known: the recorder's and those that
	// the table of kernels lacks.
	Unknown []Op

	stacks []int32 // of tensors
}

// kernels say what a call allocates.
type kernels interface {
	Run(c *eager.Call) (moves []eager.Move, known bool)
}

// Build makes the ledger of a recording's GPU. The kernels are those of a device.
func Build(rec *Recording, d eager.Device) *Run {
	return build(rec, eager.NewKernels(d), d.BlasWorkspace)
}

// build is Build with kernels and the size of cuBLAS's workspace.
func build(rec *Recording, with kernels, blas int64) *Run {
	b := &builder{
		rec: rec, kernels: with, device: int16(rec.gpu()), blas: blas,
		run:    &Run{Recording: rec, Ledger: ledger.New(), GPU: rec.gpu()},
		tensor: make([]int32, len(rec.storages)), known: map[callKey]memo{}, unknown: map[string]*unknownOp{},
		ops: make([]ledger.Name, len(rec.kinds)), lines: make([]ledger.Name, len(rec.stacks)+1),
	}
	b.ledger = b.run.Ledger
	b.ledger.Whole = true
	for i := range b.tensor {
		b.tensor[i] = unborn
	}
	for i := range b.lines {
		b.lines[i] = -1
	}
	b.ledger.Begin(b.firstPhase(), 0)
	begin := rec.firstForward()
	for i := range rec.events {
		if i == begin {
			b.ledger.Begin(ledger.Forward, 1)
		}
		b.at = i
		b.event(&rec.events[i])
	}
	b.settle(-1, -1, 0)
	b.finish()
	return b.run
}

// gpu returns the number of the GPU that most bytes are allocated on.
func (r *Recording) gpu() int {
	sums := map[int16]int64{}
	best := int16(0)
	for _, s := range r.storages {
		if s.cuda >= 0 {
			sums[s.cuda] += s.bytes >> 4 // so that no file overflows it
		}
	}
	for d, n := range sums {
		if n > sums[best] || n == sums[best] && d < best {
			best = d
		}
	}
	return int(best)
}

// GPUs returns how many GPUs the script has memory on.
func (r *Recording) GPUs() int {
	seen := map[int16]bool{}
	for _, s := range r.storages {
		if s.cuda >= 0 {
			seen[s.cuda] = true
		}
	}
	return len(seen)
}

// States of a storage instead of its tensor.
const (
	unborn  int32 = -1
	waiting int32 = -2 // born, and its call has not come yet
	claimed int32 = -3 // made by the running call
	nothing int32 = -4 // it takes no memory: it is empty, or elsewhere
)

// builder is a recording being turned into a ledger.
type builder struct {
	rec     *Recording
	run     *Run
	ledger  *ledger.Ledger
	kernels kernels
	device  int16
	blas    int64 // the size of cuBLAS's workspace
	at      int   // the event

	tensor  []int32 // storage -> tensor
	pending []int32 // storages that are waiting
	known   map[callKey]memo
	unknown map[string]*unknownOp
	order   []string // of unknown
	ops     []ledger.Name
	lines   []ledger.Name // of stacks; the first is that of none
	made    []int32       // tensors of the moves of the running call
	fresh   []bool
	bytes   []int64

	phase phases
}

// callKey is what the moves of a call depend on, with the sizes of what it makes.
type callKey struct {
	kind           int32
	thread, stream uint8
	fresh          uint64 // a bit for each output
}

// memo are the moves of calls that are alike.
type memo struct {
	moves []eager.Move
	bytes []int64 // of the outputs
	known bool
}

// unknownOp is an op that the table of kernels lacks.
type unknownOp struct {
	Op
	most int64 // bytes that one call makes
}

func (b *builder) event(e *event) {
	switch e.what {
	case called:
		b.call(e)
	case born:
		s := &b.rec.storages[e.a]
		if s.cuda != b.device || s.bytes == 0 {
			b.tensor[e.a] = nothing
			return
		}
		b.tensor[e.a] = waiting
		b.pending = append(b.pending, e.a)
	case died:
		if b.tensor[e.a] == waiting {
			b.settle(-1, -1, 0)
		}
		if t := b.tensor[e.a]; t >= 0 {
			b.ledger.Free(t)
		}
		b.tensor[e.a] = nothing
	case resized:
		b.resize(e)
	case classed:
		for _, s := range b.rec.ids[e.at : e.at+int64(e.b)] {
			if b.tensor[s] == waiting {
				b.settle(-1, -1, 0)
			}
			if t := b.tensor[s]; t >= 0 {
				b.ledger.Tensors[t].Kind = ledger.Kind(e.a)
			}
		}
	case moment:
		b.settle(-1, -1, 0)
		b.moment(e)
	}
}

// resize is untyped_storage().resize_(n): new memory, a copy, the old memory
// freed.
func (b *builder) resize(e *event) {
	b.settle(-1, -1, 0)
	old, s := b.tensor[e.a], &b.rec.storages[e.b]
	b.tensor[e.a], b.tensor[e.b] = nothing, nothing
	if s.cuda != b.device {
		return
	}
	if s.bytes > 0 {
		t := ledger.Tensor{Bytes: s.bytes, Op: b.ledger.Name("resize_")}
		if old >= 0 {
			t.Kind, t.Module = b.ledger.Tensors[old].Kind, b.ledger.Tensors[old].Module
		}
		b.tensor[e.b] = b.alloc(t, -1)
	}
	if old >= 0 {
		b.ledger.Free(old)
	}
}

// alloc enters the birth of a tensor.
func (b *builder) alloc(t ledger.Tensor, stack int32) int32 {
	b.run.stacks = append(b.run.stacks, stack)
	return b.ledger.Alloc(t)
}

// settle allocates the storages that wait for a call which did not come, or
// which does not make them.
func (b *builder) settle(kind, stack int32, stream uint8) {
	for _, s := range b.pending {
		if b.tensor[s] == waiting {
			b.tensor[s] = b.alloc(ledger.Tensor{Bytes: b.rec.storages[s].bytes, Op: b.op(kind), Module: b.line(stack), Stream: stream}, stack)
		}
	}
	b.pending = b.pending[:0]
}

// op names the op of a kind, without its namespace and its overload.
func (b *builder) op(kind int32) ledger.Name {
	if kind < 0 {
		return b.ledger.Name("storage")
	}
	if b.ops[kind] == 0 {
		b.ops[kind] = b.ledger.Name(shortOp(b.rec.kinds[kind].op))
	}
	return b.ops[kind]
}

func shortOp(op string) string {
	space, rest, ok := strings.Cut(op, ".")
	if !ok {
		return op
	}
	if i := strings.LastIndexByte(rest, '.'); i > 0 {
		rest = rest[:i]
	}
	if space != "aten" {
		return space + "." + rest
	}
	return rest
}

// line names the script's line of a stack.
func (b *builder) line(stack int32) ledger.Name {
	n := &b.lines[stack+1]
	if *n < 0 {
		*n = b.ledger.Name(b.rec.where(stack))
	}
	return *n
}

func (b *builder) call(e *event) {
	k := &b.rec.kinds[e.a]
	ids := b.rec.ids[e.at+int64(len(k.in)):][:len(k.out)]
	b.fresh, b.bytes = b.fresh[:0], b.bytes[:0]
	key := callKey{kind: e.a, thread: e.thread, stream: e.stream}
	some := false
	for i, s := range ids {
		is := s >= 0 && b.tensor[s] == waiting
		b.fresh, b.bytes = append(b.fresh, is), append(b.bytes, 0)
		if is {
			b.tensor[s] = claimed
			b.bytes[i], some = b.rec.storages[s].bytes, true
			key.fresh |= 1 << (i & 63)
		}
	}
	b.settle(e.a, e.b, e.stream) // what was born before the call and is not made by it
	if in := b.rec.ids[e.at:][:len(k.in)]; b.accumulates(e, k, in, ids) {
		b.tensor[ids[0]], b.tensor[in[0]] = b.tensor[in[0]], nothing
		return
	}
	moves := b.moves(key, k, e)
	if len(moves) > 0 || some {
		b.perform(moves, ids, e)
	}
}

// sums is the thread of autograd's own sums of gradients.
const sums = 2

// accumulates reports whether a call is autograd's own sum of two gradients, which
// is made in the memory of the first if nobody else holds that. Without bytes it
// is always a new tensor: autograd leaves tensors of other classes alone.
func (b *builder) accumulates(e *event, k *kind, in, out []int32) bool {
	if e.thread != sums || len(in) != 2 || len(out) != 1 || !b.fresh[0] {
		return false
	}
	if in[0] < 0 || in[0] == in[1] || b.tensor[in[0]] < 0 || b.rec.storages[in[0]].bytes != b.rec.storages[out[0]].bytes {
		return false
	}
	for _, next := range b.rec.events[b.at+1:] {
		switch {
		case next.what == called:
			return false
		case next.what == died && next.a == in[0]:
			return true
		}
	}
	return false
}

// moves asks the kernels, once for calls that are alike. A call that takes a
// workspace for good is not like the next.
func (b *builder) moves(key callKey, k *kind, e *event) []eager.Move {
	m, ok := b.known[key]
	if !ok || !slices.Equal(m.bytes, b.bytes) {
		c := &eager.Call{
			Op: k.op, In: k.in, Out: slices.Clone(k.out), Fresh: slices.Clone(b.fresh), Args: k.args, Kwargs: k.kwargs,
			Thread: min(int(e.thread), 1), Stream: int(e.stream), Workspaces: k.workspaces, OnGPU: b.rec.Device.Present,
		}
		for i, n := range b.bytes {
			c.Out[i].Bytes = n
		}
		m = memo{bytes: slices.Clone(b.bytes)}
		m.moves, m.known = b.kernels.Run(c)
		if len(k.out) <= 64 && !takes(m.moves) {
			b.known[key] = m
		}
	}
	switch sparse := k.sparse(); {
	case sparse > 0:
		b.lacks(k.op+" (sparse)", e, sparse)
	case !m.known && key.fresh != 0:
		b.lacks(k.op, e, sum(b.bytes))
	}
	return m.moves
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// takes reports whether moves take memory for good.
func takes(moves []eager.Move) bool {
	open := 0
	for _, m := range moves {
		switch {
		case m.Free >= 0:
			open--
		case m.Out < 0 && m.Bytes > 0:
			open++
		}
	}
	return open != 0
}

// lacks notes a call of an op that the table of kernels does not have, and that
// may take so many bytes more.
func (b *builder) lacks(op string, e *event, bytes int64) {
	u := b.unknown[op]
	if u == nil {
		u = &unknownOp{Op: Op{Name: op, Where: b.rec.where(e.b)}}
		b.unknown[op] = u
		b.order = append(b.order, op)
	}
	u.Count++
	u.most = max(u.most, bytes)
}

// perform enters the moves of a call.
func (b *builder) perform(moves []eager.Move, ids []int32, e *event) {
	op, line := b.op(e.a), b.line(e.b)
	b.made = b.made[:0]
	for i, m := range moves {
		b.made = append(b.made, nothing)
		switch {
		case m.Free >= 0:
			if m.Free < i && b.made[m.Free] >= 0 {
				b.ledger.Free(b.made[m.Free])
				b.made[m.Free] = nothing
			}
		case m.Out >= 0:
			if m.Out < len(ids) && b.fresh[m.Out] && b.tensor[ids[m.Out]] == claimed {
				b.output(ids[m.Out], m.Bytes, op, line, e)
			}
		case m.Bytes > 0:
			b.made[i] = b.alloc(ledger.Tensor{Bytes: m.Bytes, Op: op, Module: line, Kind: ledger.Workspace, Stream: e.stream}, e.b)
		}
	}
	for i, s := range ids {
		if b.fresh[i] && b.tensor[s] == claimed { // the kernels do not know of it
			b.output(s, b.rec.storages[s].bytes, op, line, e)
		}
	}
	for i, t := range b.made {
		if t >= 0 { // it stays for good
			name := "library workspace"
			if moves[i].Bytes == b.blas {
				name = "cuBLAS workspace"
			}
			b.ledger.Tensors[t].Op, b.ledger.Tensors[t].Module = b.ledger.Name(name), 0
		}
	}
}

// output allocates the storage of an output.
func (b *builder) output(s int32, bytes int64, op, line ledger.Name, e *event) {
	if bytes <= 0 {
		bytes = b.rec.storages[s].bytes
	}
	b.tensor[s] = b.alloc(ledger.Tensor{Bytes: bytes, Op: op, Module: line, Stream: e.stream}, e.b)
}

// finish completes the run.
func (b *builder) finish() {
	b.endPhases()
	b.run.Steps = b.phase.done
	for _, n := range b.rec.Unknown {
		b.run.Unknown = append(b.run.Unknown, Op{n.Text, n.Count, n.Where})
	}
	if k, ok := b.kernels.(*eager.Kernels); ok && k.Guessed() > 0 {
		b.ledger.Uncertain = append(b.ledger.Uncertain, ledger.Term{Name: "cuDNN's largest workspace is a guess", Low: k.Guessed(), High: k.Guessed(), Reserved: true})
	}
	for _, op := range b.order {
		u := b.unknown[op]
		if i := slices.IndexFunc(b.run.Unknown, func(x Op) bool { return x.Name == op }); i < 0 {
			b.run.Unknown = append(b.run.Unknown, u.Op)
		}
		b.ledger.Uncertain = append(b.ledger.Uncertain, ledger.Term{Name: "workspace of " + shortOp(op) + " is not known", High: u.most})
	}
}
