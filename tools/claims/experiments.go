package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settingsRun is a workload of claims.py under one setting.
type settingsRun struct {
	Setting, Workload string
	Seconds           []float64
	Reserved          float64
}

// besideDefault calls each with the runs under a setting and those under the defaults.
func (l *lab) besideDefault(setting string, each func(run, base settingsRun)) error {
	by := map[string]settingsRun{}
	var runs []settingsRun
	err := figures(l, "settings", func(r settingsRun) {
		if r.Setting == "default" {
			by[r.Workload] = r
		}
		if r.Setting == setting {
			runs = append(runs, r)
		}
	})
	for _, r := range runs {
		if base, ok := by[r.Workload]; ok {
			each(r, base)
		}
	}
	return err
}

// slowdown is the median over the steps that both runs have.
func slowdown(run, base settingsRun) float64 {
	var ratios []float64
	for i := range min(len(run.Seconds), len(base.Seconds)) {
		ratios = append(ratios, run.Seconds[i]/base.Seconds[i])
	}
	if len(ratios) == 0 {
		return 1
	}
	slices.Sort(ratios)
	return (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
}

func (l *lab) shareOfCaching() (out []value, err error) {
	err = l.besideDefault("no-cache", func(run, base settingsRun) {
		out = append(out, value{run.Workload, 1 - 1/slowdown(run, base)})
	})
	return out, err
}

func (l *lab) settingsChange(setting string) (out []value, err error) {
	err = l.besideDefault(setting, func(run, base settingsRun) {
		out = append(out, value{run.Workload, run.Reserved/base.Reserved - 1})
	})
	return out, err
}

func (l *lab) asyncServing() (out []value, err error) {
	err = l.besideDefault("async", func(run, base settingsRun) {
		if run.Workload == "serve_generate" {
			out = append(out, value{run.Workload, 1 / slowdown(run, base)})
		}
	})
	return out, err
}

// driverShare returns the part of each recorded run that the driver would take without a cache.
func (l *lab) driverShare() (out []value, err error) {
	spans := map[string]float64{}
	err = l.stats(func(m measuredRun, s statsOf) { spans[m.key()] = s.Span * 1e-3 })
	if err != nil {
		return nil, err
	}
	err = l.whatif(func(measuredRun) []string { return []string{"--no-cache"} }, func(m measuredRun, _, last replay) {
		out = append(out, value{m.key(), last.Driver / (last.Driver + spans[m.key()])})
	})
	return out, err
}

// statsOf is what ashlar stats says of a run.
type statsOf struct {
	Span    float64 `json:"span_us"`
	Traffic struct {
		Steps []struct {
			Allocations float64
			HitRate     float64 `json:"hit_rate"`
		}
	}
}

// stats calls each with every recorded run.
func (l *lab) stats(each func(measuredRun, statsOf)) error {
	for _, m := range l.runs {
		if m.Label != "default" {
			continue
		}
		var document struct{ Snapshot statsOf }
		if err := l.ashlar(&document, "stats", sets[m.set]+"/"+m.Name+"-default.pickle.gz", "--json"); err != nil {
			return err
		}
		each(m, document.Snapshot)
	}
	return nil
}

// warmHits returns the hit rate of the second half of each run's steps.
func (l *lab) warmHits() (out []value, err error) {
	err = l.stats(func(m measuredRun, s statsOf) {
		hits, all := 0.0, 0.0
		for _, step := range s.Traffic.Steps[len(s.Traffic.Steps)/2:] {
			hits, all = hits+step.HitRate*step.Allocations, all+step.Allocations
		}
		if all > 0 {
			out = append(out, value{m.key(), hits / all})
		}
	})
	return out, err
}

func (l *lab) secondPass() (out []value, err error) {
	type hits struct {
		Workload, Pass string
		Share          float64
	}
	err = figures(l, "hit-rate", func(h hits) {
		if h.Pass == "second" {
			out = append(out, value{h.Workload, h.Share})
		}
	})
	return out, err
}

type emptyDel struct {
	Bytes  float64
	Cached bool
	US     float64
}

// calls returns the seconds of torch.empty and del, with the cache or without it.
func (l *lab) calls(cached bool) (out []value, err error) {
	err = figures(l, "empty-del", func(e emptyDel) {
		if e.Cached == cached {
			out = append(out, value{size(e.Bytes), e.US * 1e-6})
		}
	})
	return out, err
}

func (l *lab) callRatio() ([]value, error) {
	with, err := l.calls(true)
	without, err2 := l.calls(false)
	var out []value
	for i := range min(len(with), len(without)) {
		out = append(out, value{with[i].of, without[i].x / with[i].x})
	}
	return out, errors.Join(err, err2)
}

// driverTable returns the seconds of a line of the table of driver calls, by size.
func (l *lab) driverTable(line string) ([]value, error) {
	const page = "docs/measured/whatif.md"
	sizes, err := l.cells(page, "size", 0)
	if err != nil {
		return nil, err
	}
	cells, err := l.cells(page, line, 0)
	if err != nil || len(cells) != len(sizes) {
		return nil, cmp.Or(err, fmt.Errorf("%s: %q has %d cells, want %d", page, line, len(cells), len(sizes)))
	}
	var out []value
	for i, c := range cells {
		x := numbers(c)
		if len(x) != 1 {
			return nil, fmt.Errorf("%s: %q is no number", page, c)
		}
		out = append(out, value{strings.TrimSpace(sizes[i]), x[0] * 1e-6})
	}
	return out, nil
}

// emptyCache returns the driver's seconds for each call of empty_cache before every step.
func (l *lab) emptyCache() (out []value, err error) {
	for _, m := range l.runs {
		if m.Label != "default" {
			continue
		}
		var document struct {
			EmptyCache struct{ Made float64 } `json:"empty_cache"`
			Results    []replay
		}
		file := sets[m.set] + "/" + m.Name + "-default.pickle.gz"
		if err := l.ashlar(&document, "whatif", file, "--json", "--empty-cache", "every:1"); err != nil {
			return nil, err
		}
		if n := len(document.Results); n > 1 && document.EmptyCache.Made > 0 {
			ms := document.Results[n-1].Driver - document.Results[0].Driver
			out = append(out, value{m.key(), ms * 1e-3 / document.EmptyCache.Made})
		}
	}
	return out, nil
}

func (l *lab) emptyCacheGPU() (out []value, err error) {
	type emptied struct {
		Workload string
		MS       float64
	}
	err = figures(l, "empty-cache", func(e emptied) { out = append(out, value{e.Workload, e.MS * 1e-3}) })
	return out, err
}

// checkpointing returns by how much the activations of a plan shrink.
func (l *lab) checkpointing() ([]value, error) {
	var of []float64
	for _, how := range []string{"none", "sqrt", "full"} {
		p, err := l.plan(decoder, "--recompute", how)
		if err != nil {
			return nil, err
		}
		of = append(of, p.kinds("activations", "temporaries"))
	}
	return []value{{"sqrt", of[0] / of[1]}, {"full", of[0] / of[2]}}, nil
}

type checkpointed struct {
	Model                string
	Between              *int `json:"layers_between"`
	Seconds, Activations float64
}

// checkpointPairs calls each with the passes that recompute, and the same ones that do not.
func (l *lab) checkpointPairs(each func(name string, run, base checkpointed)) error {
	base := map[string]checkpointed{}
	return figures(l, "checkpointing", func(c checkpointed) {
		if c.Between == nil {
			base[c.Model] = c
			return
		}
		each(fmt.Sprintf("%s, every %d", c.Model, *c.Between), c, base[c.Model])
	})
}

func (l *lab) checkpointTime() (out []value, err error) {
	err = l.checkpointPairs(func(name string, run, base checkpointed) {
		out = append(out, value{name, run.Seconds/base.Seconds - 1})
	})
	return out, err
}

func (l *lab) checkpointMemory() (out []value, err error) {
	err = l.checkpointPairs(func(name string, run, base checkpointed) {
		out = append(out, value{name, base.Activations / run.Activations})
	})
	return out, err
}

func (l *lab) adamFactor() ([]value, error) {
	plain, err := l.plan(llama)
	if err != nil {
		return nil, err
	}
	master, err := l.plan(llama, "--master-weights")
	return []value{
		{"all bf16", plain.Allocated / plain.kinds("parameters")},
		{"fp32 master weights", master.Allocated / master.kinds("parameters")},
	}, err
}

func (l *lab) saving() ([]value, error) {
	none, err := l.plan(llama)
	if err != nil {
		return nil, err
	}
	torch, err := l.plan(llama, "--save", "torch")
	return []value{{"of the weights", (torch.Allocated - none.Allocated) / none.kinds("parameters")}}, err
}

func (l *lab) savingGPU() (out []value, err error) {
	type saved struct {
		What               string
		Weights, Allocated float64
	}
	err = figures(l, "torch-save", func(s saved) {
		if strings.HasPrefix(s.What, "torch.save") {
			out = append(out, value{"", s.Allocated / s.Weights})
		}
	})
	return out, err
}

const gpuPage = "docs/measured/gpu.md"

func (l *lab) asyncCall() ([]value, error) {
	plain, err := l.cells(gpuPage, "cuMemAlloc and cuMemFree, 2 MiB / 20 MiB / 200 MiB / 2 GiB", 0)
	if err != nil {
		return nil, err
	}
	pool, err := l.cells(gpuPage, "cuMemAllocAsync and cuMemFreeAsync from the driver's pool", 0)
	if err != nil {
		return nil, err
	}
	from, to := numbers(plain[0]), numbers(pool[0])
	if len(from) != 4 || len(to) != 2 {
		return nil, fmt.Errorf("%s: %q and %q are not read", gpuPage, plain[0], pool[0])
	}
	return []value{{"2 MiB", from[0] / to[0]}, {"2 GiB", from[3] / to[1]}}, nil
}

func (l *lab) managed() ([]value, error) {
	cells, err := l.cells(gpuPage, "256 MiB there, through a kernel and back: copies / managed, prefetched / managed, on demand", 0)
	if err != nil {
		return nil, err
	}
	ms := numbers(cells[0])
	if len(ms) != 3 {
		return nil, fmt.Errorf("%s: %q are not three numbers", gpuPage, cells[0])
	}
	return []value{{"on demand", ms[2] / ms[0]}, {"prefetched", ms[1] / ms[0]}}, nil
}

// costs is what ashlar host costs says of a malloc.
type costs struct {
	Variant string
	Classes []struct {
		From   float64 `json:"from_bytes"`
		Usable float64 `json:"usable_bytes"`
	}
	Times []struct {
		Size    float64 `json:"size_bytes"`
		Threads int
		NS      float64
	}
	Idle float64 `json:"idle_thread_bytes"`
}

// hostCosts calls each with every malloc that was measured.
func (l *lab) hostCosts(each func(costs)) error {
	data, err := os.ReadFile(filepath.Join(l.root, "testdata/claims/host-costs.json"))
	if err != nil {
		return err
	}
	var document struct{ Mallocs []costs }
	err = json.Unmarshal(data, &document)
	for _, m := range document.Mallocs {
		each(m)
	}
	return err
}

func (l *lab) idleThread() (out []value, err error) {
	err = l.hostCosts(func(c costs) {
		if c.Variant == "tcmalloc" {
			out = append(out, value{"", c.Idle})
		}
	})
	return out, err
}

func (l *lab) mallocTime() (out []value, err error) {
	err = l.hostCosts(func(c costs) {
		for _, t := range c.Times {
			if c.Variant == "glibc" && t.Threads == 1 && t.Size <= 64<<10 {
				out = append(out, value{size(t.Size), t.NS * 1e-9})
			}
		}
	})
	return out, err
}

// usable513 returns what each malloc lets a block of 513 bytes use.
func (l *lab) usable513() (out []value, err error) {
	err = l.hostCosts(func(c costs) {
		usable := 0.0
		for _, k := range c.Classes {
			if k.From <= 513 {
				usable = k.Usable
			}
		}
		out = append(out, value{c.Variant, usable})
	})
	return out, err
}

// mallocTable returns a line of one of the two tables of workloads, and their names.
func (l *lab) mallocTable(name string, table int) (workloads []string, of []float64, err error) {
	head, err := l.cells(hostPage, "", table)
	if err != nil {
		return nil, nil, err
	}
	cells, err := l.cells(hostPage, name, table)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range cells {
		x := numbers(c)
		if len(x) != 1 || i >= len(head) {
			return nil, nil, fmt.Errorf("%s: %q is no number", hostPage, c)
		}
		workloads, of = append(workloads, strings.TrimSpace(head[i])), append(of, x[0])
	}
	return workloads, of, nil
}

// mallocRatio returns a malloc's memory (table 0) or CPU time (table 1) by workload, of glibc's.
func (l *lab) mallocRatio(name string, table int) ([]value, error) {
	workloads, of, err := l.mallocTable(name, table)
	if err != nil {
		return nil, err
	}
	base := make([]float64, len(of))
	for i := range base {
		base[i] = 1 // the second table has ratios
	}
	if table == 0 {
		if _, base, err = l.mallocTable("`glibc`", 0); err != nil {
			return nil, err
		}
	}
	var out []value
	for i, w := range workloads {
		out = append(out, value{w, of[i] / base[i]})
	}
	return out, nil
}
