package snapshot

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// Each function here turns the keys and values of a dictionary into a row. A
// field that must have a certain kind of value and does not is a *fieldError;
// other fields that cannot be understood are kept in Extra.

func (b *builder) event(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	ev := trace.Event{Time: trace.NoTime}
	var extra trace.Extra
	var size pickle.Value
	var err error
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		ok := true
		switch key {
		case keyAction:
			ev.Action, err = b.action(v)
		case keyAddr, keyDeviceFree:
			ev.Addr, err = b.bits(recEvent, key, v)
		case keySize:
			ev.Size, err = b.bits(recEvent, key, v)
			size = v
		case keyStream:
			ev.Stream, err = b.bits(recEvent, key, v)
		case keyTime:
			var t uint64
			t, err = b.bits(recEvent, key, v)
			ev.Time = int64(t)
		case keyCompile:
			ev.Compile, ok, err = b.optionalText(recEvent, key, v)
		case keyMeta:
			ev.Meta, ok, err = b.optionalText(recEvent, key, v)
		case keyFrames:
			ev.Stack, ok = b.stack(v)
			if !ok {
				ev.Stack = trace.NoStack
			}
		case keyPoolID:
			var id alloc.PoolID
			if id, ok = b.pool(v); ok {
				ev.Pool = b.events.PoolRef(id)
			}
		default:
			ok = false
		}
		if err == nil && !ok {
			extra, err = b.extra(extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	if ev.Action < alloc.ActionOOM { // any size may fail
		if _, ok := size.AsInt(); !ok || ev.Size > maxSize {
			if _, err := b.size(recEvent, keySize, size); err != nil {
				return 0, err
			}
		}
	}
	if err := b.boundEvent(&ev); err != nil {
		return 0, err
	}
	row := b.events.Len()
	b.events.Append(ev)
	if extra != nil {
		if b.events.Extra == nil {
			b.events.Extra = map[int]trace.Extra{}
		}
		b.events.Extra[row] = extra
	}
	return pickle.MakeRecord(recEvent, row), nil
}

// maxText is the longest text that is looked at. Frames and annotations have a few
// hundred bytes; answers repeat them.
const maxText = 1 << 20

// optionalText returns the value of a field that should be a text. Bytes count
// as one: that is how they are written back.
func (b *builder) optionalText(rec uint8, key trace.StringID, v pickle.Value) (trace.StringID, bool, error) {
	if n, ok := v.AsString(); ok && len(b.long) == 0 { // hardly any file has a long text
		return trace.StringID(n), true, nil
	}
	return b.anyText(rec, key, v)
}

// anyText is optionalText in files with long texts, and of values that are no text.
func (b *builder) anyText(rec uint8, key trace.StringID, v pickle.Value) (trace.StringID, bool, error) {
	n, ok := v.AsString()
	if !ok {
		n, ok = v.AsBytes()
	}
	if !ok {
		return trace.NoString, false, nil
	}
	id := trace.StringID(n)
	if b.long[id] {
		return 0, false, tooLong(rec, key, b.strings.Text(id), maxText)
	}
	return id, true, nil
}

func tooLong(rec uint8, key trace.StringID, text string, most int) error {
	return &fieldError{rec, key, fmt.Sprintf("a text of %d bytes", len(text)), fmt.Sprintf("one of up to %d: %s", most, damaged)}
}

// maxAction is the longest name of an action. Those of PyTorch have 14 letters.
const maxAction = 1 << 10

// action returns the action of an event.
func (b *builder) action(v pickle.Value) (trace.Action, error) {
	id, err := b.text(recEvent, keyAction, v)
	if err != nil {
		return 0, err
	}
	if id >= textAlloc && id <= textSnapshot {
		return trace.Action(id - textAlloc), nil
	}
	name := b.strings.Text(id)
	if len(name) > maxAction {
		return 0, tooLong(recEvent, keyAction, name, maxAction)
	}
	return b.events.ActionNamed(name)
}

func (b *builder) frame(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	var f trace.Frame
	var extra trace.Extra
	var err error
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		switch key {
		case keyName:
			f.Name, err = b.text(recFrame, key, v)
		case keyFilename:
			f.File, err = b.text(recFrame, key, v)
		case keyLine:
			var line uint64
			line, err = b.bits(recFrame, key, v)
			f.Line = int64(line)
		default:
			extra, err = b.extra(extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	if extra != nil {
		f.Extra = b.frameExtra(extra)
	}
	return pickle.MakeRecord(recFrame, int(b.stacks.AddFrame(f))), nil
}

// frameExtra returns the number of a frame's further fields. Equal ones have
// one number, so that equal frames are one frame.
func (b *builder) frameExtra(extra trace.Extra) int32 {
	var text strings.Builder
	e := newJSONEncoder(&text)
	(&walker{encoder: e}).value(extra)
	e.flush()
	id, ok := b.frameExtras[text.String()]
	if !ok {
		b.stacks.Extra = append(b.stacks.Extra, extra)
		id = int32(len(b.stacks.Extra))
		b.frameExtras[text.String()] = id
	}
	return id
}

func (b *builder) annotation(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	a := trace.Annotation{Time: trace.NoTime}
	var err error
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		var n uint64
		switch key {
		case keyStage:
			var stage trace.StringID
			stage, err = b.text(recAnnotation, key, v)
			if err == nil && stage != textStart && stage != textEnd {
				return 0, nil
			}
			a.Begin = stage == textStart
		case keyName:
			a.Name, err = b.text(recAnnotation, key, v)
		case keyDevice:
			n, err = b.bits(recAnnotation, key, v)
			a.Device = int(int64(n))
		case keyTime:
			n, err = b.bits(recAnnotation, key, v)
			a.Time = int64(n)
		default:
			a.Extra, err = b.extra(a.Extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	return pickle.MakeRecord(recAnnotation, b.annotations.add(a)), nil
}
