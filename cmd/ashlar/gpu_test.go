//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/gpu"
)

// runGPU runs a command; without a GPU of its own the machine has the stand-in.
func runGPU(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), stdio{out: &out, err: &errs}, append([]string{"gpu"}, args...))
	return code, out.String(), errs.String()
}

func TestGPU(t *testing.T) {
	cudatest.Use(t, "FAKECUDA_DEVICES=2")
	code, text, errs := runGPU(t)
	want := `driver 580.0.0, CUDA 13.0, 2 GPUs

0: Stand-in GPU
  compute capability 9.0, 4 multiprocessors, 8.00 GiB
  GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0 at 0000:19:00.0
  memory                total         free         used
    CUDA             8.00 GiB     7.71 GiB   300.00 MiB  as programs see it
    NVML             8.00 GiB     8.00 GiB          0 B  as nvidia-smi does
  utilisation    a kernel ran 25 % of the time, memory was busy 5 %
  context        300.00 MiB: what each process takes before it allocates anything
  processes      NVML sees none here

1: Stand-in GPU
`
	if !strings.HasPrefix(text, want) || code != exitOK || errs != "" {
		t.Errorf("exit status %d, %s\n%s", code, errs, cmp.Diff(want, text))
	}
	code, text, errs = runGPU(t, "--json", "--context", "never")
	var info gpu.Info
	strict(t, text, &info)
	if code != exitOK || errs != "" || len(info.Devices) != 2 || info.Devices[1].Driver != nil || info.Devices[1].NVML == nil {
		t.Errorf("exit status %d, %s\n%s", code, errs, text)
	}
}

// strict reads a document that has the fields of to and its schema.
func strict(t *testing.T, text string, to any) {
	t.Helper()
	text, found := strings.CutPrefix(text, fmt.Sprintf("{\n  \"schema\": %d,", answer.Schema))
	if !found {
		t.Fatalf("no schema: %s", text)
	}
	text = "{" + text
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Why there is no GPU, in one line.
func TestNoGPU(t *testing.T) {
	for _, tt := range []struct{ name, setting, want string }{
		{"none", "FAKECUDA_INIT=100", "ashlar: no GPU: the driver in "},
		{"broken", "FAKECUDA_INIT=999", "ashlar: the NVIDIA driver in "},
		{"none visible", "FAKECUDA_DEVICES=0", "ashlar: no GPU: the driver in "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cudatest.Use(t, tt.setting)
			for _, args := range [][]string{nil, {"--json"}, {"bench"}} {
				code, text, errs := runGPU(t, args...)
				if code != exitInput || (text == "") == slices.Contains(args, "--json") || !strings.HasPrefix(errs, tt.want) || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "nvidia-smi") {
					t.Errorf("%v: exit status %d, %q, %q", args, code, text, errs)
				}
			}
		})
	}
}

// The JSON of a bench, without its numbers, and its text.
func TestGPUBench(t *testing.T) {
	cudatest.Use(t, "FAKECUDA_MEMORY=524288000") // the large cases are left out
	code, text, errs := runGPU(t, "bench", "--quick", "--json")
	if code != exitOK || errs != "" {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	strict(t, text, new(gpu.Bench))
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"rows", "skipped", "reading"} {
		all := doc[list].([]any)
		if len(all) == 0 {
			t.Fatalf("%s is empty", list)
		}
		doc[list] = all[:1]
	}
	doc["reading"] = []any{"text"} // it has numbers
	got, err := json.MarshalIndent(shape(doc), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gpuBenchShape, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if code, text, errs = runGPU(t, "bench", "--device", "3"); code != exitInput || text != "" || errs != "ashlar: no GPU 3: the driver shows 1, counted from 0\n" {
		t.Errorf("exit status %d, %q, %q", code, text, errs)
	}
}

// shape replaces numbers by what they are.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = shape(e)
		}
	case []any:
		for i, e := range v {
			v[i] = shape(e)
		}
	case float64:
		return "number"
	}
	return v
}

const gpuBenchShape = `{
  "cpus": "number",
  "cuda_version": "13.0",
  "device": {
    "compute_capability": "9.0",
    "index": "number",
    "multiprocessors": "number",
    "name": "Stand-in GPU",
    "pci_bus_id": "0000:19:00.0",
    "total_bytes": "number",
    "uuid": "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
  },
  "driver_version": "580.0.0",
  "elapsed_s": "number",
  "free_bytes": "number",
  "interrupted": false,
  "quick": true,
  "reading": [
    "text"
  ],
  "rows": [
    {
      "case": "pair",
      "goroutines": null,
      "group": "driver",
      "handles": null,
      "least_ns": "number",
      "median_ns": "number",
      "most_ns": "number",
      "part": "alloc",
      "per_round": "number",
      "pool_reserved_bytes": null,
      "quartile_high_ns": "number",
      "quartile_low_ns": "number",
      "rounds": "number",
      "settings": null,
      "size_bytes": "number",
      "streams": null,
      "what": "a call of cuMemAlloc"
    }
  ],
  "schema": "number",
  "skipped": [
    {
      "case": "pair",
      "goroutines": null,
      "group": "driver",
      "handles": null,
      "settings": null,
      "size_bytes": "number",
      "streams": null,
      "why": "it needs 200.00 MiB and may take half of the 200.00 MiB that are free"
    }
  ]
}`
