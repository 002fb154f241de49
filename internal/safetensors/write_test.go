package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// What Layout writes Read reads, with the data in the order that Layout says.
func TestLayout(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "flags", DType: "BOOL", Shape: []int64{3}, Bytes: 3},
		{Name: "weight", DType: "F32", Shape: []int64{2, 3}, Bytes: 24},
		{Name: "half \"precision\"\n", DType: "BF16", Shape: []int64{5}, Bytes: 10},
		{Name: "step", DType: "I64", Bytes: 8},
		{Name: "none", DType: "F32", Shape: []int64{0, 7}},
		{Name: "", DType: "F4", Shape: []int64{6}, Bytes: 3},
	}
	header, order, err := safetensors.Layout(tensors)
	if err != nil {
		t.Fatal(err)
	}
	if len(header)%8 != 0 || binary.LittleEndian.Uint64(header) != uint64(len(header)-8) {
		t.Errorf("a header of %d bytes says %d", len(header), binary.LittleEndian.Uint64(header))
	}
	want := make([]safetensors.Tensor, len(order))
	at := uint64(0)
	for i, j := range order {
		want[i] = tensors[j]
		if want[i].Shape == nil {
			want[i].Shape = []int64{}
		}
		if n := want[i].Elements(); n > 0 && want[i].Bytes%n == 0 && at%(want[i].Bytes/n) != 0 {
			t.Errorf("%q begins at %d", want[i].Name, at)
		}
		at += want[i].Bytes
	}
	got, err := safetensors.Read(bytes.NewReader(header), int64(len(header))+int64(at))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tensors (-want +got):\n%s", d)
	}
	if _, _, err := safetensors.Layout(nil); err != nil {
		t.Error(err)
	}
}

func TestLayoutRefuses(t *testing.T) {
	ok := safetensors.Tensor{Name: "a", DType: "U8", Shape: []int64{4}, Bytes: 4}
	with := func(change func(*safetensors.Tensor)) []safetensors.Tensor {
		t := ok
		change(&t)
		return []safetensors.Tensor{t}
	}
	for want, tensors := range map[string][]safetensors.Tensor{
		"two of that name":    {ok, ok},
		"is not one of":       with(func(t *safetensors.Tensor) { t.DType = "float" }),
		"5 bytes, but U8 [4]": with(func(t *safetensors.Tensor) { t.Bytes = 5 }),
		"negative":            with(func(t *safetensors.Tensor) { t.Shape = []int64{-4} }),
		"not UTF-8":           with(func(t *safetensors.Tensor) { t.Name = "\xff" }),
		"another use":         with(func(t *safetensors.Tensor) { t.Name = "__metadata__" }),
		"above the format's":  with(func(t *safetensors.Tensor) { t.Name = strings.Repeat("x", 100_000_000) }),
	} {
		if _, _, err := safetensors.Layout(tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
