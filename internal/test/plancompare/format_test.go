package plancompare

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

const facts = `{"case": "tiny", "spec": {"m": {"fam": "llama"}, "b": 1, "s": 2, "ckpt": "full"}, "params": 7,
	"peak_allocated": 1024, "peak_reserved": 2097152, "peak_requested": 130, "retries": 0,
	"named": [["w", [3, 4], "torch.bfloat16"]], "config": {"model_type": "llama"}}`

const events = `=== build
SA #0 2097152 empty | a.py:1:f
A #1 100 empty_memory_format | linear.py:109:__init__ modeling.py:5:__init__
=== forward0
A #2 24 stream=1f mm<matmul |` + ` 
F #1 100  | rec.py:9:run
A #3 5 add_Tensor | rec.py:9:run
`

func TestReadText(t *testing.T) {
	r, err := ReadText(strings.NewReader(facts), strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	l := r.Ledger
	if got, want := l.Events, []int32{0, 1, ^0, 2}; !cmp.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if got, want := l.Phases, []ledger.Phase{{Name: "build"}, {Name: "forward", Step: 1, First: 1}}; !cmp.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
	if x := l.Tensors[1]; x.Bytes != 24 || x.Stream != 1 || l.Text(x.Op) != "mm<matmul" || x.Death != ledger.Lives {
		t.Errorf("tensor 1 is %+v", x)
	}
	if got := l.Text(r.FreedAt[0]); got != "rec.py:9:run" {
		t.Errorf("freed at %q", got)
	}
	if !cmp.Equal(r.Named, []Parameter{{"w", []int64{3, 4}, "torch.bfloat16"}}) || r.Spec.Ckpt != "full" || r.PeakRequested != 130 {
		t.Errorf("facts are %+v", r.Case)
	}
}

func TestRoundTrip(t *testing.T) {
	r, err := ReadText(strings.NewReader(facts), strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(r), plain(back)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(r.Case, back.Case); diff != "" {
		t.Error(diff)
	}
}

// plain spells names out: two ledgers may number them differently.
func plain(r *Run) []any {
	var out []any
	for i, t := range r.Ledger.Tensors {
		out = append(out, r.Ledger.Text(t.Op), r.Ledger.Text(t.Module), r.Ledger.Text(r.FreedBy[i]), r.Ledger.Text(r.FreedAt[i]))
		t.Op, t.Module = 0, 0
		out = append(out, t)
	}
	return append(out, r.Ledger.Events, r.Ledger.Phases)
}

func TestReadTextRefuses(t *testing.T) {
	tests := []struct{ name, facts, events, want string }{
		{"an unknown option", `{"spec": {"m": {}, "b": 1, "s": 1, "offload": true}}`, "", "offload"},
		{"a death before birth", facts, "F #1 100 | x", "never born"},
		{"a death of another size", facts, "A #1 100 a | x\nF #1 99  | x", "dies with 99"},
		{"an unknown event", facts, "Q #1 100 | x", `"Q"`},
		{"half a line", facts, "A #1", "line 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadText(strings.NewReader(tt.facts), strings.NewReader(tt.events))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// A file that is cut off anywhere is refused.
func TestReadRefuses(t *testing.T) {
	r, err := ReadText(strings.NewReader(facts), strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	for n := range file.Len() {
		if _, err := Read(bytes.NewReader(file.Bytes()[:n])); err == nil {
			t.Fatalf("%d of %d bytes were read without an error", n, file.Len())
		}
	}
}
