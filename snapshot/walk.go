package snapshot

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// encoder takes the values of a snapshot in the order of a file.
type encoder interface {
	beginDict()
	endDict()
	key(name string)
	beginList()
	endList()
	// beginShared begins a list or dictionary that may come again. It returns
	// false if it came before and nothing is left to do.
	beginShared(s shared) bool

	text(s string)
	int(n int64)
	bool(x bool)
	pair(first, second int64)
	other(v any) // nil, uint64, *big.Int or float64
}

// shared is a stack or a frame.
type shared struct {
	rec uint8
	id  uint32
}

// walker shows the things of a trace to an encoder, with the keys in the order
// of PyTorch.
type walker struct {
	encoder
	strings *trace.Strings
	stacks  *trace.Stacks
}

func (w *walker) event(e *trace.Events, i int) {
	ev := e.At(i)
	w.beginDict()
	w.eventFields(e.ActionName(ev.Action), &ev)
	if ev.Pool != trace.NoPool {
		id := e.Pools[ev.Pool]
		w.key("pool_id")
		w.pair(int64(id.First), int64(id.Second))
	}
	w.frames(ev.Stack)
	if len(e.Extra) > 0 {
		w.fields(e.Extra[i])
	}
	w.endDict()
}

// eventFields shows what every event has, up to its pool and its frames.
func (w *walker) eventFields(action string, ev *trace.Event) {
	w.key("action")
	w.text(action)
	if ev.Action == alloc.ActionOOM {
		w.key("device_free")
	} else {
		w.key("addr")
	}
	w.int(int64(ev.Addr))
	w.key("size")
	w.int(int64(ev.Size))
	w.key("stream")
	w.int(int64(ev.Stream))
	w.time(ev.Time)
	w.optional("compile_context", ev.Compile)
	w.optional("user_metadata", ev.Meta)
}

func (w *walker) time(t int64) {
	if t != trace.NoTime {
		w.key("time_us")
		w.int(t)
	}
}

func (w *walker) optional(key string, id trace.StringID) {
	if id != trace.NoString {
		w.key(key)
		w.text(w.strings.Text(id))
	}
}

func (w *walker) frames(id trace.StackID) {
	if id != trace.NoStack {
		w.key("frames")
		w.stack(id)
	}
}

func (w *walker) stack(id trace.StackID) {
	if !w.beginShared(shared{recStack, uint32(id)}) {
		return
	}
	for _, f := range w.stacks.Frames(id) {
		w.frame(f)
	}
	w.endList()
}

func (w *walker) frame(id trace.FrameID) {
	if !w.beginShared(shared{recFrame, uint32(id)}) {
		return
	}
	f := w.stacks.Frame(id)
	w.key("name")
	w.text(w.strings.Text(f.Name))
	w.key("filename")
	w.text(w.strings.Text(f.File))
	w.key("line")
	if f.Line >= 0 {
		w.int(f.Line)
	} else { // no known line is the largest unsigned number in PyTorch
		w.other(uint64(f.Line))
	}
	if f.Extra > 0 {
		w.fields(w.stacks.Extra[f.Extra-1])
	}
	w.endDict()
}

func (w *walker) segment(device int, s *trace.Segment) {
	number := func(key string, n uint64) {
		w.key(key)
		w.int(int64(n))
	}
	w.beginDict()
	number("device", uint64(device))
	number("address", s.Address)
	number("total_size", s.TotalSize)
	number("allocated_size", s.AllocatedSize)
	number("active_size", s.ActiveSize)
	number("requested_size", s.RequestedSize)
	number("stream", s.Stream)
	w.key("segment_type")
	w.text(s.Type)
	if s.HasPool {
		w.key("segment_pool_id")
		w.pair(int64(s.Pool.First), int64(s.Pool.Second))
	}
	if !s.Extra.Has("is_expandable") {
		w.key("is_expandable")
		w.bool(s.Expandable)
	}
	// PyTorch fills in the stacks it has after everything else.
	if s.Stack == trace.EmptyStack {
		w.frames(s.Stack)
	}
	w.key("blocks")
	w.beginList()
	for i := range s.Blocks {
		w.block(&s.Blocks[i])
	}
	w.endList()
	if s.Stack != trace.EmptyStack {
		w.frames(s.Stack)
	}
	w.fields(s.Extra)
	w.endDict()
}

func (w *walker) block(b *trace.Block) {
	w.beginDict()
	w.key("address")
	w.int(int64(b.Address))
	w.key("size")
	w.int(int64(b.Size))
	w.key("requested_size")
	w.int(int64(b.RequestedSize))
	w.key("state")
	w.text(b.StateName())
	if b.History != nil {
		w.key("history")
		w.beginList()
		for i := range b.History {
			w.use(&b.History[i])
		}
		w.endList()
	} else {
		w.frames(b.Stack)
	}
	w.fields(b.Extra)
	w.endDict()
}

func (w *walker) use(u *trace.Use) {
	w.beginDict()
	w.key("addr")
	w.int(int64(u.Addr))
	w.key("real_size")
	w.int(int64(u.RealSize))
	w.frames(u.Stack)
	w.fields(u.Extra)
	w.endDict()
}

func (w *walker) annotation(a *trace.Annotation) {
	w.beginDict()
	w.key("stage")
	if a.Begin {
		w.text("START")
	} else {
		w.text("END")
	}
	w.key("name")
	w.text(w.strings.Text(a.Name))
	w.key("device")
	w.int(int64(a.Device))
	w.time(a.Time)
	w.fields(a.Extra)
	w.endDict()
}

func (w *walker) fields(x trace.Extra) {
	for _, f := range x {
		w.key(f.Name)
		w.value(f.Value)
	}
}

func (w *walker) value(v any) {
	switch v := v.(type) {
	case bool:
		w.bool(v)
	case int64:
		w.int(v)
	case string:
		w.text(v)
	case trace.List:
		w.beginList()
		for _, item := range v {
			w.value(item)
		}
		w.endList()
	case trace.Extra:
		w.beginDict()
		w.fields(v)
		w.endDict()
	default:
		w.other(v)
	}
}
