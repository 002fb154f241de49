package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// script makes a ledger of births: an op, with its bytes if they matter, or =phase.
func script(births string) *Ledger {
	l := New()
	step := 0
	for _, w := range strings.Fields(births) {
		if phase, ok := strings.CutPrefix(w, "="); ok {
			if phase == "forward" {
				step++
			}
			l.Begin(phase, step)
			continue
		}
		op, size, _ := strings.Cut(w, ":")
		t := Tensor{Bytes: 512, Op: l.Name(strings.ReplaceAll(op, "_workspace", " workspace"))}
		if size != "" {
			fmt.Sscan(size, &t.Bytes)
		}
		l.Alloc(t)
	}
	return l
}

// text writes external memory as birth:MiB, one after the other, h for the host's.
func text(ts Externals) string {
	var out []string
	for _, t := range ts {
		s := fmt.Sprintf("%d:%.4g", t.Tensor, float64(t.Bytes)/(1<<20))
		if t.Host {
			s += "h"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestExternal(t *testing.T) {
	const libraries = "242h 66h 36.03h"
	cudnn := func(birth, pages int) string {
		var out []string
		for range pages {
			out = append(out, fmt.Sprintf("%d:2", birth))
		}
		for _, s := range strings.Fields(libraries) {
			out = append(out, fmt.Sprintf("%d:%s", birth, s))
		}
		return strings.Join(out, " ")
	}
	tests := []struct{ name, births, want string }{
		{"nothing", "=build parameter =forward mm add", ""},
		{"messages, once", "=build parameter =forward randint embedding add to index", "3:8.254"},
		{"messages of a power", "=build pow scalar_tensor =forward embedding", "1:8.254"},
		{"none after the last birth", "=forward randint embedding", ""},
		{"a value is read", "=forward eq:3 all:1 add eq:1 all:1 add", "2:2"},
		{"a tensor of a byte is not always read", "=forward new_ones:1 add", ""},
		{"handles", "=forward bmm cuBLAS_workspace cat =backward mm cuBLAS_workspace mm", "1:2 1:64 4:64"},
		{"cuDNN before its workspace", "=forward mm cudnn_attention cudnn_attention cudnn_attention cudnn_attention add", cudnn(4, 5)},
		{"cuDNN without one", "=forward mm cudnn_attention add cudnn_attention add", cudnn(2, 5)},
		{"cuDNN when the page is there", "=forward all:1 cudnn_attention cudnn_attention add", "1:2 " + cudnn(2, 4)},
		{"a thread each", "=forward mm cudnn_attention add =backward cudnn_attention_backward cudnn_attention_backward mm", cudnn(2, 5) + " 4:2 4:2 4:2 4:2"},
		{"recomputed on the other thread", "=forward mm cudnn_attention add =backward mm cudnn_attention mm", cudnn(2, 5) + " 5:2 5:2 5:2 5:2"},
		{"a convolution before cuBLAS", "=forward cudnn_convolution cat cuBLAS_workspace cat =backward cuBLAS_workspace convolution_backward sum", cudnn(1, 6) + " 2:64 4:64 6:2 6:2 6:2 6:2"},
		{"another's convolution", "=forward mm conv1d =backward convolution_backward sum", ""},
		{"the first step only", "=forward mm =backward mm =forward embedding cuBLAS_workspace mm", ""},
		{"kernels need cuBLAS", "=forward a b c d e f g h i j k l m n o p q r s t u v w x y z", ""},
		{"a page for kernels", "=forward a b c d e f g h i j k l m n o p cuBLAS_workspace q q r r s s", "16:2 16:64 20:2"},
		{"a page for more kernels than fit", "=forward a b c d e f g h i j k l m n o p q r s t u v cuBLAS_workspace a x y z", "22:2 22:64 25:2"},
	}
	for _, tt := range tests {
		if got := text(script(tt.births).External()); got != tt.want {
			t.Errorf("%s: %s\n\twant %s", tt.name, got, tt.want)
		}
	}
}

// External memory comes in the order of births, whatever the ledger.
func TestExternalOrder(t *testing.T) {
	words := []string{"to", "all:1", "cuBLAS_workspace", "cudnn_attention", "cudnn_convolution", "convolution_backward", "a", "b", "=backward", "=forward"}
	for seed := range 2000 {
		var births []string
		for i, x := 0, seed*7+1; i < 12; i, x = i+1, x*1103515245+12345 {
			births = append(births, words[x>>4&0xfff%len(words)])
		}
		ts := script(strings.Join(births, " ")).External()
		if !slices.IsSortedFunc(ts, func(a, b External) int { return int(a.Tensor - b.Tensor) }) {
			t.Fatalf("%v: %s", births, text(ts))
		}
	}
}
