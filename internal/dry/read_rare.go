package dry

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

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
		err = r.remark(raw[1:], &r.out.Notes, r.noteAt)
	case `"u"`:
		err = r.remark(raw[1:], &r.out.Unknown, r.unknownAt)
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
	if err := r.hold(len(frames)); err != nil {
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
	if len(raw) > 6 && json.Unmarshal(raw[6], &k.workspaces) != nil {
		return errMalformed
	}
	for _, n := range k.workspaces {
		if n < -1 || n > maxBytes {
			return r.problem("%s has a workspace of %d bytes, which cannot be; %s", k.op, n, rewrite)
		}
	}
	var err error
	if err = r.hold(len(in) + len(out)); err != nil {
		return err
	}
	if k.in, err = r.tensors(in); err != nil {
		return err
	}
	if k.out, err = r.tensors(out); err != nil {
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

// hold counts tensors of kinds and frames of stacks.
func (r *reader) hold(n int) error {
	if r.metas += n; r.metas > maxMetas {
		return r.problem("the kinds of calls and the stacks have more than %d tensors and frames; %s", maxMetas, rewrite)
	}
	return nil
}

// tensors reads tensors: [dtype, shape, strides, device].
func (r *reader) tensors(raw [][]json.RawMessage) ([]eager.Meta, error) {
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
		r.out.forward = true
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
	case "compile":
		if said == "inductor" {
			r.out.Compiled++
		}
	case "end":
		r.out.Ended = said
	}
	return nil // others have no effect on memory
}

// remark reads a text and the stack where it was first said, and counts it.
func (r *reader) remark(raw []json.RawMessage, to *[]Note, at map[string]int) error {
	var text string
	stack := int32(-1)
	if err := fields(raw, &text); err != nil {
		return err
	}
	if len(raw) > 1 && json.Unmarshal(raw[1], &stack) != nil {
		return errMalformed
	}
	i, ok := at[text]
	if !ok {
		i = len(*to)
		at[text] = i
		*to = append(*to, Note{Text: text, Where: r.out.where(stack)})
	}
	(*to)[i].Count++
	return nil
}
