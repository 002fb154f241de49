package anonymous

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Name is a word that stands for a name in a snapshot.
type Name struct{ Word, Was string }

// File returns a copy of a snapshot without names, and which word stands for
// which name, in the order of the file.
func File(f *snapshot.File, salt []byte) (*snapshot.File, []Name) {
	h := newHider(salt)
	out := *f
	out.Name = "anonymous"
	out.Warnings = nil
	out.Extra = hideFields(f.Extra)
	out.Traces = nil
	for _, t := range f.Traces {
		out.Traces = append(out.Traces, h.trace(t))
	}
	if f.Host != nil {
		out.Host = h.trace(f.Host)
	}
	return &out, h.names
}

// hider replaces the names of one file.
type hider struct {
	salt    []byte
	words   map[string]string
	names   []Name
	strings *trace.Strings
	tables  map[*trace.Stacks]table
}

func newHider(salt []byte) *hider {
	return &hider{salt: salt, words: map[string]string{}, strings: &trace.Strings{}, tables: map[*trace.Stacks]table{}}
}

// letters spell a hash. Without vowels they spell none of the words that rules
// look for.
const letters = "bcdfghjkmnpqrtvw"

// wordLetters of 4 bits each: among a million names one collision in 500 files.
const wordLetters = 12

// word returns what stands for a name of a kind.
func (h *hider) word(kind, name string) string {
	key := kind + "\x00" + name
	if w, ok := h.words[key]; ok {
		return w
	}
	mac := hmac.New(sha256.New, h.salt)
	mac.Write([]byte(key))
	bits := binary.LittleEndian.Uint64(mac.Sum(nil))
	spelled := make([]byte, wordLetters)
	for i := range spelled {
		spelled[i] = letters[bits>>(4*i)&15]
	}
	w := kind + "-" + string(spelled)
	h.words[key] = w
	h.names = append(h.names, Name{w, name})
	return w
}

func (h *hider) trace(t *trace.Trace) *trace.Trace {
	out := *t
	out.Strings = h.strings
	stacks := h.stacks(t)
	out.Stacks = stacks.stacks
	out.Extra = hideFields(t.Extra)
	out.Settings = hideSettings(t.Settings)
	h.events(&out.Events, t, stacks.ids)
	out.Segments = make([]trace.Segment, len(t.Segments))
	for i := range t.Segments {
		out.Segments[i] = h.segment(t.Segments[i], stacks.ids)
	}
	out.Annotations = make([]trace.Annotation, len(t.Annotations))
	for i, a := range t.Annotations {
		a.Name, a.Extra = h.text(t, a.Name, h.annotation), nil
		out.Annotations[i] = a
	}
	return &out
}

// events hides the texts and stacks of events. The other columns are shared with t.
func (h *hider) events(e *trace.Events, t *trace.Trace, stacks []trace.StackID) {
	e.Meta, e.Compile, e.Stack = trace.Column[trace.StringID]{}, trace.Column[trace.StringID]{}, trace.Column[trace.StackID]{}
	e.Extra, e.Others = nil, nil
	for i := range t.Events.Len() {
		e.Stack.Append(stacks[t.Events.Stack.At(i)])
		e.Meta.Append(h.text(t, t.Events.Meta.At(i), h.metadata))
		e.Compile.Append(h.text(t, t.Events.Compile.At(i), h.compile))
	}
	for i, x := range t.Events.Extra {
		if x = numbersOf(x, fileFields); len(x) > 0 {
			if e.Extra == nil {
				e.Extra = map[int]trace.Extra{}
			}
			e.Extra[i] = x
		}
	}
	for _, name := range t.Events.Others {
		e.Others = append(e.Others, h.word("action", name))
	}
}

func (h *hider) segment(s trace.Segment, stacks []trace.StackID) trace.Segment {
	s.Stack = stacks[s.Stack]
	if s.Type != "small" && s.Type != "large" {
		s.Type = h.word("type", s.Type)
	}
	s.Extra = numbersOf(s.Extra, fileFields)
	blocks := make([]trace.Block, len(s.Blocks))
	for i, b := range s.Blocks {
		if b.State == trace.OtherState {
			b.StateText = h.word("state", b.StateText)
		}
		b.Stack, b.Extra = stacks[b.Stack], numbersOf(b.Extra, fileFields)
		if b.History != nil {
			history := make([]trace.Use, len(b.History))
			for j, u := range b.History {
				u.Stack, u.Extra = stacks[u.Stack], nil
				history[j] = u
			}
			b.History = history
		}
		blocks[i] = b
	}
	s.Blocks = blocks
	return s
}

// text hides a text of a trace; NoString stays.
func (h *hider) text(t *trace.Trace, id trace.StringID, hide func(string) string) trace.StringID {
	if id == trace.NoString {
		return id
	}
	return h.strings.Add(hide(t.Strings.Text(id)))
}
