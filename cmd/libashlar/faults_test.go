package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// driverCalls are the calls that the library makes while it serves memory.
var driverCalls = []string{
	"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuCtxSynchronize",
	"cuThreadExchangeStreamCaptureMode", "cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemFree_v2", "cuStreamIsCapturing", "cuStreamSynchronize", "cuEventCreate",
	"cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
	"cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemGetAllocationGranularity", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2",
}

// training is a load with streams, a graph's pool, memory that is given back, and
// statistics. All blocks are freed at its end.
func training() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for step := range 3 {
		for i := range 12 {
			add("malloc %d %d %d 0", i, (i+1)*700_000*(step+1), i%2)
		}
		for i := range 6 {
			add("record %d 1", i)
			add("free %d", i)
		}
		add("begin 0 7 %d 0", step)
		add("malloc 20 3000000 0 0")
		add("end 0 7 %d", step)
		add("free 20")
		add("release 0 7 %d", step)
		add("empty")
		for i := range 6 {
			add("free %d", i+6)
		}
	}
	return append(lines, "empty", "snapshot 0", "stats 0")
}

// answered is what a call may answer: a number, ok, or an error that names a call of
// the driver.
var answered = regexp.MustCompile(`^(\d+|ok|oom CUDA out of memory.*|oom .*|failed .*\bcu[A-Z][A-Za-z_0-9]+.*)$`)

// Every call of the driver fails, once or for ever, while the library serves memory:
// the process lives on, the error names the call, and no memory is lost.
func TestFaults(t *testing.T) {
	short.Skip(t)
	t.Parallel()
	env := onCUDA(t)
	lines := training()
	refused := map[string]bool{}
	for i, call := range driverCalls {
		for j, when := range []string{"1:999", "5:2", "3:999:ever"} {
			conf := []string{"expandable_segments:True", "expandable_segments:False"}[(i+j)%2]
			fault := fmt.Sprintf("FAKECUDA_FAIL=%s:%s", call, when)
			out, said := run(t, "script.c", strings.Join(lines, "\n")+"\n", append(env, fault, "ASHLAR_CONF="+conf)...)
			answers := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if len(answers) != len(lines) {
				t.Errorf("%s, %s: %d answers to %d calls: %s", fault, conf, len(answers), len(lines), said)
				continue
			}
			for k, a := range answers[:len(answers)-2] {
				if strings.HasPrefix(a, "failed") {
					refused[call] = true
				}
				if !answered.MatchString(a) {
					t.Errorf("%s, %s: %s: %s", fault, conf, lines[k], a)
					break
				}
			}
			if !strings.HasSuffix(when, "ever") {
				nothingLost(t, fault+", "+conf, answers[len(answers)-1])
			}
		}
	}
	if len(refused) < len(driverCalls)/2 {
		t.Errorf("only the failures of %v are seen", refused)
	}
}

// nothingLost reports whether statistics say that no block is in use.
func nothingLost(t *testing.T, what, stats string) {
	t.Helper()
	var all struct {
		Allocated struct {
			All struct{ Current, Peak int64 } `json:"all"`
		} `json:"allocated_bytes"`
	}
	if err := json.Unmarshal([]byte(stats), &all); err != nil {
		t.Errorf("%s: %v: %.200s", what, err, stats)
		return
	}
	if n := all.Allocated.All; n.Current != 0 || n.Peak == 0 {
		t.Errorf("%s: %d bytes are in use after all was freed, at the peak %d", what, n.Current, n.Peak)
	}
}
