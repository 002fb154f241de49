package main

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// onCUDA are the settings of a process that finds a stand-in for the driver.
// It calls back from threads that Go did not make, as PyTorch does.
func onCUDA(t *testing.T, more ...string) []string {
	t.Helper()
	path := cudatest.Build(t)
	return append([]string{driverVariable + "=cuda", "ASHLAR_LIBCUDA=" + path, "ASHLAR_LIBNVML=" + path, "FAKECUDA_MEMORY=4294967296", "FAKECUDA_DEVICES=2"}, more...)
}

func TestOverCUDA(t *testing.T) {
	short.Skip(t)
	t.Parallel()
	env := onCUDA(t)
	s := &script{t: t}
	for i := range 40 {
		s.address(nil, "malloc %d %d 0 %d", i, (i+1)*300_000, i%2)
	}
	for i := range 20 {
		s.expect("ok", "record %d 1", i)
		s.expect("ok", "free %d", i)
	}
	s.say(func(text string) {
		for _, want := range []string{"oom CUDA out of memory. Tried to allocate 3.", "this process has", "more than the"} {
			if !strings.Contains(text, want) {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		}
	}, "malloc 100 %d 0 0", int64(39)<<30/10)
	s.contains([]string{"no GPU 2"}, "malloc 100 10 0 2")
	s.expect("ok", "empty")
	s.expect("ok", "begin 1 3 0 1")
	s.address(nil, "malloc 101 50000 1 1")
	s.expect("ok", "end 1 3 0")
	s.expect("ok", "release 1 3 0")
	s.contains([]string{`"num_ooms":1`}, "stats 0")
	s.contains([]string{`"num_ooms":0`}, "stats 1")
	if said := s.run(env...); said != "" {
		t.Errorf("standard error: %s", said)
	}
	if _, said := run(t, "threads.cpp", "", env...); said != "" {
		t.Errorf("standard error: %s", said)
	}
	if out, said := run(t, "fork.c", "", env...); out != "ok\n" || said != "" {
		t.Errorf("%s%s", out, said)
	}
	for range 5 {
		if out, said := run(t, "exit.cpp", "", env...); out != "" || said != "" {
			t.Fatalf("%s%s", out, said)
		}
	}
}
