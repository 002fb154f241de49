package jsonl

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	long := strings.Repeat(" ", 2<<20)
	for _, tt := range []struct {
		name, text string
		want       []int
		problem    string
	}{
		{"plain.jsonl", "1\n2\n3", []int{1, 2, 3}, ""},
		{"packed.jsonl.gz", pack("4\n5" + long + "\n"), []int{4, 5}, ""},
		{"empty.jsonl", "", nil, "empty.jsonl: unexpected EOF"},
		{"wrong.jsonl", "1\n\"2\"\n", nil, "wrong.jsonl: line 2: "},
		{"cut.jsonl.gz", pack("1\n2\n")[:25], nil, "cut.jsonl.gz: after line"},
		{"plain.jsonl.gz", "1\n", nil, "plain.jsonl.gz: "},
		{"long.jsonl", "1\n2" + long + long, nil, "long.jsonl: after line 1: "},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Read[int](path)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if _, err := Read[int](filepath.Join(t.TempDir(), "nowhere")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
