package snapshot

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// builder takes the dictionaries of a file as they are completed and puts them
// into tables. It is the hook of the machine that reads the file.
type builder struct {
	machine *pickle.Machine
	offset  func() int64 // where the reader is
	limits  Limits
	strings *trace.Strings
	stacks  *trace.Stacks
	shapes  []*shape

	// All events of the file; lists of events are runs of these rows.
	events      trace.Events
	segments    rows[segmentRow]
	blocks      rows[trace.Block]
	uses        rows[trace.Use]
	annotations rows[trace.Annotation]
	pairs       rows[[2]pickle.Value]
	pairIDs     map[[2]pickle.Value]int

	frames      []trace.FrameID // of the stack being made
	frameExtras map[string]int32
	expanded    int                // values in Extras
	given       [len(recNames)]int // events, segments and annotations that lists have named
	reserved    uint64             // bytes of all segments
	moved       uint64             // bytes of all events
	pools       map[streamPool]struct{}
	recent      [64]eventPool // some of those that are in pools
	shared      map[pickle.Value]expanded
	long        map[trace.StringID]bool // texts above maxText

	// problem is the first dictionary that looks like one of the known things
	// and is not. It matters if that is missed later.
	problem error
}

type segmentRow struct {
	device         int
	saysExpandable bool // is_expandable is there
	trace.Segment
}

func newBuilder(limits Limits) *builder {
	b := &builder{
		limits: limits, strings: newStrings(), stacks: trace.NewStacks(), offset: func() int64 { return 0 },
		pairIDs: map[[2]pickle.Value]int{}, frameExtras: map[string]int32{},
		shared: map[pickle.Value]expanded{}, long: map[trace.StringID]bool{}, pools: map[streamPool]struct{}{},
	}
	b.machine = pickle.NewMachine(b, limits.pickle())
	return b
}

// Intern is part of pickle.Hook.
func (b *builder) Intern(text []byte) (uint32, error) {
	if b.strings.Len() == math.MaxUint32 {
		return 0, fmt.Errorf("more than %d different texts", math.MaxUint32)
	}
	id := b.strings.Intern(text)
	if len(text) > maxText {
		b.long[id] = true
	}
	return uint32(id), nil
}

// Text is part of pickle.Hook.
func (b *builder) Text(id uint32) string { return b.strings.Text(trace.StringID(id)) }

// Dict is part of pickle.Hook.
func (b *builder) Dict(_ *pickle.Machine, pairs []pickle.Value) (pickle.Value, error) {
	s := b.shapeOf(pairs)
	var v pickle.Value
	var err error
	switch s.rec {
	case recEvent:
		v, err = b.event(s, pairs)
	case recFrame:
		v, err = b.frame(s, pairs)
	case recBlock:
		v, err = b.block(s, pairs)
	case recSegment:
		v, err = b.segment(s, pairs)
	case recAnnotation:
		v, err = b.annotation(s, pairs)
	case recUse:
		v, err = b.use(s, pairs)
	}
	if wrong, ok := err.(*fieldError); ok {
		if b.problem == nil {
			b.problem = fmt.Errorf("before byte %d: %w", b.offset(), wrong)
		}
		return 0, nil
	}
	return v, err
}

// List is part of pickle.Hook. It takes lists of frames.
func (b *builder) List(m *pickle.Machine, items []pickle.Value) (pickle.Value, error) {
	rec, _, ok := items[0].AsRecord()
	if !ok {
		if rec, _, _, ok = items[0].AsRun(); !ok {
			return b.Tuple(m, items)
		}
	}
	if rec != recFrame {
		return 0, nil
	}
	b.frames = b.frames[:0]
	for _, v := range items {
		rec, id, ok := v.AsRecord()
		if ok && rec == recFrame {
			b.frames = append(b.frames, trace.FrameID(id))
			continue
		}
		rec, first, count, ok := v.AsRun()
		if !ok || rec != recFrame {
			return 0, nil
		}
		for i := range count {
			b.frames = append(b.frames, trace.FrameID(first+i))
		}
	}
	return pickle.MakeRecord(recStack, int(b.stacks.Add(b.frames))), nil
}

// maxPairs bounds the number of different pairs; pool ids are few.
const maxPairs = 1 << 20

// Tuple is part of pickle.Hook. It takes pairs of integers, which are pool ids:
// later versions of PyTorch write one with each event.
func (b *builder) Tuple(_ *pickle.Machine, items []pickle.Value) (pickle.Value, error) {
	if len(items) != 2 {
		return 0, nil
	}
	_, ok0 := items[0].AsInt()
	_, ok1 := items[1].AsInt()
	if !ok0 || !ok1 {
		return 0, nil
	}
	pair := [2]pickle.Value{items[0], items[1]}
	id, ok := b.pairIDs[pair]
	if !ok {
		if id = b.pairs.n; id == maxPairs {
			return 0, nil
		}
		b.pairs.add(pair)
		b.pairIDs[pair] = id
	}
	return pickle.MakeRecord(recPair, id), nil
}

// fieldError is a field of a known thing with a value that it cannot have.
type fieldError struct {
	rec  uint8
	key  trace.StringID
	got  string
	want string
}

func (e *fieldError) Error() string {
	return fmt.Sprintf("%s has a %q that is %s instead of %s", recNames[e.rec], keyTexts[e.key], e.got, e.want)
}

var recNames = [...]string{
	"something", "an event", "a frame", "a stack", "a segment", "a block", "a history entry", "an annotation", "a pair",
}

// bits returns the value of a field that must be an integer.
func (b *builder) bits(rec uint8, key trace.StringID, v pickle.Value) (uint64, error) {
	if n, ok := v.AsInt(); ok {
		return uint64(n), nil
	}
	return b.anyBits(rec, key, v)
}

// anyBits is bits of numbers that are large, and of values that are no number.
func (b *builder) anyBits(rec uint8, key trace.StringID, v pickle.Value) (uint64, error) {
	if n, ok := b.machine.Bits(v); ok {
		return n, nil
	}
	return 0, &fieldError{rec, key, b.machine.KindOf(v).String(), "an integer of 64 bits"}
}

// size returns the value of a field that must be a number of bytes.
func (b *builder) size(rec uint8, key trace.StringID, v pickle.Value) (uint64, error) {
	n, err := b.bits(rec, key, v)
	if err == nil && n > maxSize {
		number, _ := b.machine.Big(v)
		return 0, &fieldError{rec, key, number.String(), "a size, from 0 to 2^46: " + damaged}
	}
	return n, err
}

// text returns the value of a field that must be a text.
func (b *builder) text(rec uint8, key trace.StringID, v pickle.Value) (trace.StringID, error) {
	if id, ok, err := b.optionalText(rec, key, v); ok || err != nil {
		return id, err
	}
	return 0, &fieldError{rec, key, b.machine.KindOf(v).String(), "a text"}
}

// stack returns the value of a field that should be a list of frames.
func (b *builder) stack(v pickle.Value) (trace.StackID, bool) {
	if rec, id, ok := v.AsRecord(); ok {
		return trace.StackID(id), rec == recStack
	}
	return trace.EmptyStack, b.machine.KindOf(v) == pickle.List && len(b.machine.Items(v)) == 0
}

// pool returns the value of a field that should be a pool id.
func (b *builder) pool(v pickle.Value) (alloc.PoolID, bool) {
	items := b.machine.Items(v)
	if rec, i, ok := v.AsRecord(); ok && rec == recPair {
		pair := b.pairs.row(i)
		items = pair[:]
	}
	if len(items) != 2 {
		return alloc.PoolID{}, false
	}
	first, ok0 := b.machine.Bits(items[0])
	second, ok1 := b.machine.Bits(items[1])
	return alloc.PoolID{First: first, Second: second}, ok0 && ok1
}
