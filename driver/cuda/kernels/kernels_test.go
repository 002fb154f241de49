//go:build linux

package kernels_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// TestSet runs the kernels on the stand-in, which has them in C. That the PTX
// does the same is checked on a GPU by the test of driver/cuda.
func TestSet(t *testing.T) {
	d := cudatest.Device(t, cudatest.Use(t))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	k, err := kernels.Load(d)
	check(err)
	const words = 100_000
	addr, err := d.Malloc(8*words+16, 0)
	check(err)
	outcome := addr + 8*words
	check(k.Spin(1000, 0))
	check(k.Write(addr, words, 42, 0))

	mem := make([]byte, 8*words)
	check(d.CopyToHost(mem, addr, 0))
	var sum uint64
	for i := range uint64(words) {
		got := binary.LittleEndian.Uint64(mem[8*i:])
		if got != kernels.Word(42, i) {
			t.Fatalf("word %d is %#x, want %#x", i, got, kernels.Word(42, i))
		}
		sum += got
	}
	check(k.Clear(outcome, 0))
	check(k.Check(addr, words, 42, outcome, 0))
	if o, err := k.Outcome(outcome, 0); err != nil || o != (kernels.Outcome{First: math.MaxUint64}) {
		t.Errorf("an unharmed pattern: %+v, %v", o, err)
	}
	check(d.Fill(addr+8*777, 0, 16, 0))
	check(k.Check(addr, words, 42, outcome, 0))
	if o, err := k.Outcome(outcome, 0); err != nil || o != (kernels.Outcome{Wrong: 2, First: 777}) {
		t.Errorf("two words spoiled: %+v, %v", o, err)
	}
	check(k.Check(addr, words, 43, outcome, 0))
	if o, err := k.Outcome(outcome, 0); err != nil || o.Wrong < words-2 || o.First != 0 {
		t.Errorf("another seed: %+v, %v", o, err)
	}
	check(k.Write(addr, words, 42, 0))
	check(d.Fill(outcome, 0, 8, 0))
	check(k.Sum(addr, words, outcome, 0))
	if o, err := k.Outcome(outcome, 0); err != nil || o.Wrong != sum {
		t.Errorf("the sum is %#x, want %#x; %v", o.Wrong, sum, err)
	}
	if err := k.Write(addr+1, 1, 0, 0); err == nil {
		t.Error("an address that is no multiple of 8 was accepted")
	}
	check(k.Write(addr, 0, 0, 0))
	check(k.Close())
	check(d.Free(addr, 8*words+16))
}

// TestGather compares the reads with those that Index says.
func TestGather(t *testing.T) {
	d := cudatest.Device(t, cudatest.Use(t))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	k, err := kernels.Load(d)
	check(err)
	g, err := kernels.LoadGather(d)
	check(err)
	const words, reads = 1000, 3000
	addr, err := d.Malloc(8*words+16, 0)
	check(err)
	result := addr + 8*words
	check(k.Write(addr, words, 42, 0))
	for _, stride := range []uint64{0, 1, 7, 512} {
		var want uint64
		for i := range uint64(reads) {
			want += kernels.Word(42, kernels.Index(i, words, stride))
		}
		check(d.Fill(result, 0, 8, 0))
		check(g.Read(addr, words, reads, stride, result, 0))
		if o, err := k.Outcome(result, 0); err != nil || o.Wrong != want {
			t.Errorf("stride %d: the sum is %#x, want %#x; %v", stride, o.Wrong, want, err)
		}
	}
	if g.Read(addr+1, 1, 1, 1, result, 0) == nil || g.Read(addr, 0, 1, 1, result, 0) == nil {
		t.Error("no words, or an odd address, were accepted")
	}
	check(g.Read(addr, words, 0, 1, result, 0))
	check(g.Close())
	check(k.Close())
	check(d.Free(addr, 8*words+16))
}
