package dry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Bounds of what is read, so that a damaged file is refused before it takes the
// machine's memory.
const (
	maxBytes  = 1 << 42 // of a storage
	maxLive   = 1 << 43 // of all at a time
	maxID     = 1 << 22 // of frames, stacks and kinds
	maxEvents = 1 << 28
)

// rewrite is what to do about a file that is wrong.
const rewrite = "write it anew with ashlar dry --ledger FILE -- python script.py"

// Read reads the file that a dry run wrote; it may be compressed with gzip. A
// file that is cut short is read up to the cut, and [Recording.Cut] says so.
func Read(ctx context.Context, from io.Reader) (*Recording, error) {
	buffered := bufio.NewReaderSize(from, 1<<16)
	if head, _ := buffered.Peek(2); bytes.Equal(head, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("the compressed data is damaged (%w): %s", err, rewrite)
		}
		buffered = bufio.NewReaderSize(z, 1<<20)
	}
	r := &reader{
		lines: lines{from: buffered}, out: &Recording{},
		alive: map[int64]int32{}, noteAt: map[string]int{}, unknownAt: map[string]int{},
	}
	if err := r.header(); err != nil {
		return nil, err
	}
	for {
		if r.lines.n&0xfff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line, whole, err := r.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return r.out, nil
		case errors.Is(err, errLongLine):
			return nil, r.problem("%v", err)
		case err != nil:
			r.out.Cut = fmt.Sprintf("the file ends in line %d, in the middle of its compressed data (%v)", r.lines.n, err)
			return r.out, nil
		}
		if err := r.line(line); err != nil {
			if !whole {
				r.out.Cut = fmt.Sprintf("the file ends in the middle of line %d", r.lines.n)
				return r.out, nil
			}
			return nil, err
		}
	}
}

// reader is a file being read.
type reader struct {
	lines lines
	out   *Recording

	dense  []int32         // storage of the file -> that of the recording, or gone
	alive  map[int64]int32 // the same of numbers that are far from the others
	births int64
	live   int64 // bytes
	device map[string]int16
	buffer []int64

	noteAt, unknownAt map[string]int
}

// Storages that are not there.
const (
	never int32 = -1 // was not born
	gone  int32 = -2
)

func (r *reader) problem(format string, args ...any) error {
	return &Error{Line: max(r.lines.n, 1), Text: fmt.Sprintf(format, args...)}
}

func (r *reader) header() error {
	line, _, err := r.lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return r.problem("%v; %s", err, rewrite)
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return r.problem("the file is empty: the dry run ended before it wrote anything; %s", rewrite)
	}
	h := &r.out.Header
	if err := json.Unmarshal(line, h); err != nil || line[0] != '{' {
		return r.problem("%s is not the beginning of a dry run's ledger; %s", quoted(line), rewrite)
	}
	switch {
	case h.Version == 0:
		return r.problem(`there is no "ashlar_dry": the file is not a dry run's ledger; %s`, rewrite)
	case h.Version != Version:
		return r.problem("the ledger is of version %d, and this ashlar reads version %d: use a recorder and an ashlar of one version; ashlar dry -- python script.py does", h.Version, Version)
	case h.Device.Total < 0 || h.Device.Processors < 0 || h.Device.Threads < 0:
		return r.problem("the device has negative properties; %s", rewrite)
	}
	return nil
}

// line reads a line after the first.
func (r *reader) line(line []byte) error {
	if len(r.out.events) >= maxEvents {
		return r.problem("the ledger has more than %d events: give the recorder fewer --steps", maxEvents)
	}
	c := cursor{rest: line}
	switch c.letter() {
	case 'o':
		return r.call(&c, line)
	case 'b':
		return r.birth(&c, line)
	case 'd':
		id := c.next()
		if !c.end() {
			return r.malformed(line)
		}
		return r.death(id)
	case 'r':
		return r.resize(&c, line)
	}
	if c.bad {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		return r.malformed(line)
	}
	return r.rare(line)
}

func (r *reader) malformed(line []byte) error {
	return r.problem("%s is not a line of a dry run's ledger; %s", quoted(line), rewrite)
}

// storage returns the storage that a number of the file stands for.
func (r *reader) storage(id int64) int32 {
	if id >= 0 && id < int64(len(r.dense)) {
		return r.dense[id]
	}
	if s, ok := r.alive[id]; ok {
		return s
	}
	return never
}

// setStorage has a number stand for a storage. The recorder counts them up, so a
// slice holds them; a map holds what a damaged file may have.
func (r *reader) setStorage(id int64, to int32) {
	const room = 1 << 12
	if n := int64(len(r.dense)); id < n {
		r.dense[id] = to
		return
	} else if id < 8*r.births+room {
		for ; n < id; n++ {
			r.dense = append(r.dense, never)
		}
		r.dense = append(r.dense, to)
		return
	}
	r.alive[id] = to
}

func (r *reader) add(e event) {
	r.out.events = append(r.out.events, e)
	r.out.Events++
}

func (r *reader) birth(c *cursor, line []byte) error {
	id, bytes, device := c.next(), c.next(), c.text()
	switch {
	case !c.end():
		return r.malformed(line)
	case id < 0:
		return r.problem("storage %d: storages count up from 0; %s", id, rewrite)
	case r.storage(id) >= 0:
		return r.problem("storage %d is born a second time while it lives; %s", id, rewrite)
	case bytes < 0 || bytes > maxBytes:
		return r.problem("storage %d has %d bytes, which no storage can have; %s", id, bytes, rewrite)
	}
	r.births++
	s := int32(len(r.out.storages))
	r.out.storages = append(r.out.storages, storage{bytes, r.cuda(device)})
	r.setStorage(id, s)
	if err := r.grow(s, bytes); err != nil {
		return err
	}
	r.add(event{what: born, a: s})
	return nil
}

// grow counts bytes that a storage on a GPU takes more.
func (r *reader) grow(s int32, by int64) error {
	if r.out.storages[s].cuda < 0 {
		return nil
	}
	if r.live += by; r.live > maxLive {
		return r.problem("%s are allocated at a time, more than any GPU has: give the script a smaller batch", units.Size(uint64(r.live)))
	}
	return nil
}

// cuda returns the number of a device: cuda:1 is 1; -1 for any other.
func (r *reader) cuda(device string) int16 {
	n, ok := r.device[device]
	if !ok {
		n = -1
		if kind, number, _ := strings.Cut(device, ":"); kind == "cuda" {
			n = 0
			if k, err := strconv.ParseUint(number, 10, 8); err == nil {
				n = int16(k)
			}
		}
		if r.device == nil || len(r.device) > 1<<10 {
			r.device = map[string]int16{}
		}
		r.device[device] = n
	}
	return n
}

// known returns a storage that lives.
func (r *reader) known(id int64, what string) (int32, error) {
	switch s := r.storage(id); s {
	case never:
		return s, r.problem("storage %d %s, but it was never born; %s", id, what, rewrite)
	case gone:
		return s, r.problem("storage %d %s, but it is gone already; %s", id, what, rewrite)
	default:
		return s, nil
	}
}

func (r *reader) death(id int64) error {
	s, err := r.known(id, "dies")
	if err != nil {
		return err
	}
	r.setStorage(id, gone)
	r.live -= max(r.out.storages[s].bytes, 0) * onGPU(r.out.storages[s])
	r.add(event{what: died, a: s})
	return nil
}

// onGPU is 1 for a storage on a GPU, else 0.
func onGPU(s storage) int64 {
	if s.cuda < 0 {
		return 0
	}
	return 1
}

func (r *reader) resize(c *cursor, line []byte) error {
	id, bytes := c.next(), c.next()
	if !c.end() {
		return r.malformed(line)
	}
	if bytes < 0 || bytes > maxBytes {
		return r.problem("storage %d is resized to %d bytes, which no storage can have; %s", id, bytes, rewrite)
	}
	s, err := r.known(id, "is resized")
	if err != nil {
		return err
	}
	was := r.out.storages[s].bytes
	if err := r.grow(s, bytes-was); err != nil {
		return err
	}
	// The storage keeps its number and gets a new entry, so that the birth has the
	// first size.
	next := int32(len(r.out.storages))
	r.out.storages = append(r.out.storages, storage{bytes, r.out.storages[s].cuda})
	r.setStorage(id, next)
	r.add(event{what: resized, a: s, b: next})
	return nil
}

func (r *reader) call(c *cursor, line []byte) error {
	k, stack, thread, stream := c.next(), c.next(), c.next(), c.next()
	r.buffer = c.list(r.buffer[:0])
	in := len(r.buffer)
	r.buffer = c.list(r.buffer)
	if !c.end() {
		return r.malformed(line)
	}
	if k < 0 || k >= int64(len(r.out.kinds)) || !r.out.kinds[k].defined {
		return r.problem("a call of kind %d, which no line before defines; %s", k, rewrite)
	}
	kind := &r.out.kinds[k]
	if in != len(kind.in) || len(r.buffer)-in != len(kind.out) {
		return r.problem("a call of %s has %d inputs and %d outputs, but its kind has %d and %d; %s",
			kind.op, in, len(r.buffer)-in, len(kind.in), len(kind.out), rewrite)
	}
	if stack >= int64(len(r.out.stacks)) || stack < -1 {
		return r.problem("a call of %s has stack %d, which no line before defines; %s", kind.op, stack, rewrite)
	}
	if thread < 0 || thread > 255 || stream < 0 {
		return r.problem("a call of %s is on thread %d and stream %d, which cannot be; %s", kind.op, thread, stream, rewrite)
	}
	e := event{what: called, thread: uint8(thread), stream: uint8(min(stream, 255)), a: int32(k), b: int32(stack), at: int64(len(r.out.ids))}
	for i, id := range r.buffer {
		s := never
		if id >= 0 {
			s = r.storage(id)
		}
		if i >= in && id >= 0 && s < 0 {
			_, err := r.known(id, "is made by "+kind.op)
			return err
		}
		r.out.ids = append(r.out.ids, max(s, never))
	}
	r.add(e)
	return nil
}

// rare reads the lines that there are few of.
func (r *reader) rare(line []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil || len(raw) < 2 {
		return r.malformed(line)
	}
	var err error
	switch string(raw[0]) {
	case `"F"`:
		err = r.frame(raw[1:])
	case `"S"`:
		err = r.stack(raw[1:])
	case `"K"`:
		err = r.kind(raw[1:])
	case `"c"`:
		err = r.class(raw[1:])
	case `"m"`:
		err = r.moment(raw[1:])
	case `"n"`:
		err = r.note(raw[1:])
	case `"u"`:
		err = r.unknown(raw[1:])
	default:
		return r.problem("%s lines are not of version %d: use a recorder and an ashlar of one version; ashlar dry -- python script.py does", raw[0], Version)
	}
	if err == errMalformed {
		return r.malformed(line)
	}
	return err
}

var errMalformed = errors.New("malformed")

// fields reads the fields of a line.
func fields(raw []json.RawMessage, to ...any) error {
	if len(raw) < len(to) {
		return errMalformed
	}
	for i, v := range to {
		if json.Unmarshal(raw[i], v) != nil {
			return errMalformed
		}
	}
	return nil
}

// place makes room for the definition of a number.
func place[T any](r *reader, all *[]T, what string, id int, empty T) error {
	if id < 0 || id >= maxID || id > 2*len(*all)+1<<10 {
		return r.problem("%s %d: they count up from 0; %s", what, id, rewrite)
	}
	for len(*all) <= id {
		*all = append(*all, empty)
	}
	return nil
}

func (r *reader) frame(raw []json.RawMessage) error {
	var id int
	var f timeline.Frame
	if err := fields(raw, &id, &f.Filename, &f.Line, &f.Name); err != nil {
		return err
	}
	if err := place(r, &r.out.frames, "frame", id, timeline.Frame{}); err != nil {
		return err
	}
	r.out.frames[id] = f
	return nil
}

func (r *reader) stack(raw []json.RawMessage) error {
	var id int
	var frames []int32
	if err := fields(raw, &id, &frames); err != nil {
		return err
	}
	for _, f := range frames {
		if f < 0 || int(f) >= len(r.out.frames) {
			return r.problem("stack %d has frame %d, which no line before defines; %s", id, f, rewrite)
		}
	}
	if err := place(r, &r.out.stacks, "stack", id, nil); err != nil {
		return err
	}
	r.out.stacks[id] = frames
	return nil
}

func (r *reader) kind(raw []json.RawMessage) error {
	var id int
	k := kind{defined: true}
	var in, out [][]json.RawMessage
	if err := fields(raw, &id, &k.op, &in, &out); err != nil {
		return err
	}
	if len(raw) > 4 && json.Unmarshal(raw[4], &k.args) != nil || len(raw) > 5 && json.Unmarshal(raw[5], &k.kwargs) != nil {
		return errMalformed
	}
	var err error
	if k.in, err = r.metas(in); err != nil {
		return err
	}
	if k.out, err = r.metas(out); err != nil {
		return err
	}
	for i, a := range k.args {
		k.args[i] = reference(a)
	}
	for name, a := range k.kwargs {
		k.kwargs[name] = reference(a)
	}
	if err := place(r, &r.out.kinds, "kind", id, kind{}); err != nil {
		return err
	}
	if r.out.kinds[id].defined {
		return r.problem("kind %d is defined a second time; %s", id, rewrite)
	}
	r.out.kinds[id] = k
	return nil
}

// metas reads tensors: [dtype, shape, strides, device].
func (r *reader) metas(raw [][]json.RawMessage) ([]eager.Meta, error) {
	out := make([]eager.Meta, len(raw))
	for i, t := range raw {
		var dtype string
		m := &out[i]
		if err := fields(t, &dtype, &m.Shape); err != nil {
			return nil, err
		}
		if len(t) > 2 && json.Unmarshal(t[2], &m.Stride) != nil {
			return nil, errMalformed
		}
		for _, n := range m.Shape {
			if n < 0 || n > maxBytes {
				return nil, r.problem("a tensor has the shape %v, which cannot be; %s", m.Shape, rewrite)
			}
		}
		m.DType, m.Known = dtypes[strings.TrimPrefix(dtype, "torch.")]
	}
	return out, nil
}

// dtypes are the types that package eager knows, by name.
var dtypes = func() map[string]eager.DType {
	out := map[string]eager.DType{}
	for d := eager.Bool; d <= eager.Complex64; d++ {
		out[d.String()] = d
	}
	return out
}()

// reference has {"t": 3} stand for the tensor that it means.
func reference(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if i, ok := v["t"].(float64); ok && len(v) == 1 {
			return eager.Ref(i)
		}
	case []any:
		for i, x := range v {
			v[i] = reference(x)
		}
	}
	return v
}

// classes are what storages may be told to be.
var classes = map[string]ledger.Kind{
	"parameter": ledger.Weight, "buffer": ledger.Buffer, "gradient": ledger.Gradient, "optimizer": ledger.Optimizer, "input": ledger.Input,
}

func (r *reader) class(raw []json.RawMessage) error {
	var name string
	var ids []int64
	if err := fields(raw, &name, &ids); err != nil {
		return err
	}
	k, ok := classes[name]
	if !ok {
		return r.problem("storages are of the class %q, which version %d does not have; %s", name, Version, rewrite)
	}
	e := event{what: classed, a: int32(k), at: int64(len(r.out.ids))}
	for _, id := range ids {
		if s := r.storage(id); s >= 0 { // one that is gone by now is past telling
			r.out.ids = append(r.out.ids, s)
			e.b++
		}
	}
	r.add(e)
	return nil
}

func (r *reader) moment(raw []json.RawMessage) error {
	var name string
	if err := fields(raw, &name); err != nil {
		return err
	}
	var value any
	if len(raw) > 1 && json.Unmarshal(raw[1], &value) != nil {
		return errMalformed
	}
	said, _ := value.(string)
	begins := said == "begin"
	either := func(begin, end int32) {
		if begins {
			end = begin
		}
		r.add(event{what: moment, a: end})
	}
	switch name {
	case "forward":
		either(forwardBegin, forwardEnd)
	case "backward":
		r.out.backward = true
		either(backwardBegin, backwardEnd)
	case "optimizer":
		either(optimizerBegin, optimizerEnd)
	case "empty_cache":
		r.add(event{what: moment, a: emptyCache})
	case "steps":
		n, _ := value.(float64)
		if n < 1 || n > maxEvents {
			return r.problem("step %v is done, which cannot be; %s", value, rewrite)
		}
		r.add(event{what: moment, a: stepDone, b: int32(n)})
	case "save":
		r.out.Saves = append(r.out.Saves, said)
	case "end":
		r.out.Ended = said
	}
	return nil // others have no effect on memory
}

func (r *reader) note(raw []json.RawMessage) error {
	var text string
	stack := int32(-1)
	if err := fields(raw, &text); err != nil {
		return err
	}
	if len(raw) > 1 && json.Unmarshal(raw[1], &stack) != nil {
		return errMalformed
	}
	i, ok := r.noteAt[text]
	if !ok {
		i = len(r.out.Notes)
		r.noteAt[text] = i
		r.out.Notes = append(r.out.Notes, Note{Text: text, Where: r.out.where(stack)})
	}
	r.out.Notes[i].Count++
	return nil
}

func (r *reader) unknown(raw []json.RawMessage) error {
	var op string
	stack := int32(-1)
	if err := fields(raw, &op); err != nil {
		return err
	}
	if len(raw) > 1 && json.Unmarshal(raw[1], &stack) != nil {
		return errMalformed
	}
	i, ok := r.unknownAt[op]
	if !ok {
		i = len(r.out.Unknown)
		r.unknownAt[op] = i
		r.out.Unknown = append(r.out.Unknown, Op{Name: op, Where: r.out.where(stack)})
	}
	r.out.Unknown[i].Count++
	return nil
}
