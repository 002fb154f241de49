package plancompare

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// ReadText reads a recording as the recording script writes it: facts is its
// JSON document, and events its text with a line for each event:
//
//	=== forward0
//	A #7 6193152 resize_<index_select<embedding | functional.py:2567:embedding sparse.py:189:forward
//	F #7 6193152  | modeling_llama.py:388:forward
//
// A is a birth, F a death; segments are the allocator's business and left out.
func ReadText(facts, events io.Reader) (*Run, error) {
	r := &Run{Ledger: ledger.New()}
	if err := json.NewDecoder(facts).Decode(&r.Case); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	t := textReader{Run: r, ids: map[string]int32{}, streams: map[string]uint8{"": 0}}
	in := bufio.NewScanner(events)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		if err := t.line(in.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r, in.Err()
}

type textReader struct {
	*Run
	ids     map[string]int32
	streams map[string]uint8
}

func (t *textReader) line(s string) error {
	if label, ok := strings.CutPrefix(s, "=== "); ok {
		name := strings.TrimRight(label, "0123456789")
		step := 0
		if digits := label[len(name):]; digits != "" {
			step, _ = strconv.Atoi(digits)
			step++
		}
		t.Ledger.Begin(name, step)
		return nil
	}
	left, frames, _ := strings.Cut(s, " | ")
	words := strings.Fields(left)
	if len(words) < 3 {
		return fmt.Errorf("not an event: %q", s)
	}
	action, id := words[0], words[1]
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return err
	}
	stream, ops := "", ""
	for _, w := range words[3:] {
		if x, ok := strings.CutPrefix(w, "stream="); ok {
			stream = x
		} else {
			ops = w
		}
	}
	l := t.Ledger
	op, at := l.Name(ops), l.Name(strings.Join(fields(frames), " "))
	switch action {
	case "A":
		if _, ok := t.streams[stream]; !ok {
			t.streams[stream] = uint8(len(t.streams))
		}
		t.ids[id] = l.Alloc(ledger.Tensor{Bytes: size, Op: op, Module: at, Stream: t.streams[stream]})
		t.FreedBy, t.FreedAt = append(t.FreedBy, 0), append(t.FreedAt, 0)
	case "F":
		n, ok := t.ids[id]
		if !ok {
			return fmt.Errorf("a death of %s, which was never born", id)
		}
		if l.Tensors[n].Bytes != size {
			return fmt.Errorf("%s is born with %d bytes and dies with %d", id, l.Tensors[n].Bytes, size)
		}
		delete(t.ids, id)
		t.FreedBy[n], t.FreedAt[n] = op, at
		l.Free(n)
	case "SA", "SF":
	default:
		return fmt.Errorf("%q is no event", action)
	}
	return nil
}

// fields cuts frames apart.
func fields(s string) []string { return strings.Fields(s) }
