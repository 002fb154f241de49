package oracle

import (
	"strings"
	"testing"
)

func TestOpsInWords(t *testing.T) {
	seen := map[string]bool{}
	for k := range numOpKinds {
		s := Op{Kind: k, ID: 7, Size: 99, Stream: 2, Text: "kind"}.String()
		if s == "" || strings.Contains(s, "of kind") || seen[s] {
			t.Errorf("operation %q: %q", opNames[k], s)
		}
		seen[s] = true
	}
	for _, tt := range []struct {
		op   Op
		want string
	}{
		{Op{Kind: OpAlloc, ID: 7, Size: 99, Stream: 2}, "allocate tensor 7 of 99 bytes on stream 2"},
		{Op{Kind: OpBeginCapture, ID: 2, Share: 1, Shared: true}, "begin capture of graph 2 in the pool of graph 1"},
		{Op{Kind: OpConfigure, Text: "a:b"}, `set "a:b"`},
	} {
		if got := tt.op.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
