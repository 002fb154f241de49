package main

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

// Everything that runs on a GPU runs on the stand-in for its driver, which
// does queued work only when somebody waits for it.
func TestStandIn(t *testing.T) {
	lib := cudatest.Use(t, "FAKECUDA_LAZY=1", "FAKECUDA_MEMORY=171798691840")
	for _, args := range [][]string{
		{"small", "-operations", "250"},
		{"oracle", "-both", recording("pressure-expand"), recording("streams-split64"), recording("lessons-default")},
	} {
		code, out, errs := runCommand(t, args...)
		if code != exitGood {
			t.Errorf("%q: exit %d\n%s%s", args, code, out, errs)
		}
		if !strings.Contains(out, "Stand-in GPU") {
			t.Errorf("%q ran elsewhere:\n%s", args, out)
		}
		for _, what := range cudatest.Kinds {
			if n := lib.Count(what); n != 0 {
				t.Errorf("%q: %d %s left behind", args, n, what)
			}
		}
	}
	// A driver that fails in the middle is a failure, not a way to pass.
	lib.Fail("cuMemAlloc_v2", 12, 700)
	if code, out, errs := runCommand(t, "oracle", recording("mixed-default")); code != exitBad || !strings.Contains(out, "CUDA_ERROR_ILLEGAL_ADDRESS") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	lib.Heal()
	lib.Fail("cuLaunchKernel", 30, 700)
	if code, out, errs := runCommand(t, "small"); code != exitBad || !strings.Contains(errs, "CUDA_ERROR_ILLEGAL_ADDRESS") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
