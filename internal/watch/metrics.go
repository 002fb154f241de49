package watch

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// seriesEnd is how long after the last sample a job's series are still shown.
const seriesEnd = 5 * time.Minute

// metric is a number of a sample as Prometheus gets it.
type metric struct {
	name, help string
	counter    bool
	column     int
	scale      float64
}

var metrics = []metric{
	{"ashlar_allocated_bytes", "Bytes that PyTorch's tensors hold.", false, Allocated, 1},
	{"ashlar_active_bytes", "Bytes in active blocks.", false, Active, 1},
	{"ashlar_reserved_bytes", "Bytes that PyTorch's allocator has from the driver.", false, Reserved, 1},
	{"ashlar_requested_bytes", "Bytes that the job asked for, before rounding.", false, Requested, 1},
	{"ashlar_inactive_split_bytes", "Free bytes in split segments, which cannot be released.", false, InactiveSplit, 1},
	{"ashlar_pinned_bytes", "Bytes of pinned host memory.", false, Pinned, 1},
	{"ashlar_peak_allocated_bytes", "Most bytes that were allocated at once.", false, PeakAllocated, 1},
	{"ashlar_peak_reserved_bytes", "Most bytes that were reserved at once.", false, PeakReserved, 1},
	{"ashlar_device_free_bytes", "Free bytes of the device.", false, DeviceFree, 1},
	{"ashlar_device_total_bytes", "All bytes of the device.", false, DeviceTotal, 1},
	{"ashlar_limit_bytes", "The process's limit on reserved bytes, if it has one.", false, Limit, 1},
	{"ashlar_host_rss_bytes", "Resident host memory of the process.", false, HostRSS, 1},
	{"ashlar_step", "The step that the job said it is at.", false, Step, 1},
	{"ashlar_step_seconds", "Duration of the last step.", false, StepTime, 1e-6},
	{"ashlar_alloc_retries_total", "Allocations that flushed the cache and were tried again.", true, Retries, 1},
	{"ashlar_ooms_total", "Out-of-memory errors of the allocator.", true, OOMs, 1},
	{"ashlar_device_allocs_total", "Calls for memory of the driver.", true, DeviceAllocs, 1},
	{"ashlar_device_frees_total", "Calls that gave memory back to the driver.", true, DeviceFrees, 1},
}

// processMetric is all that is known of a process that says nothing of itself.
var processMetric = metric{"ashlar_process_used_bytes", "Bytes of the device that a process holds which does not call ashlar.watch(), as NVML says.", false, Reserved, 1}

// WriteMetrics writes the last samples in the text format of Prometheus.
func (s *Server) WriteMetrics(w io.Writer) error {
	type series struct {
		labels string
		row    Row
		ended  bool
		seen   time.Time
		hello  int64 // when it first came
		id     string
	}
	var all, outside []series
	alarms := map[string]int{}
	s.mu.Lock()
	now := s.opts.Now()
	for _, one := range s.sessions {
		if now.Sub(one.seen) > seriesEnd {
			continue
		}
		to := &all
		if one.hello.source() == FromNVML {
			to = &outside
		}
		for _, r := range one.last {
			*to = append(*to, series{labels(&one.hello, r.GPU), r, one.hello.Ended, one.seen, one.hello.TimeUS, one.id})
		}
	}
	for _, r := range s.opts.Rules {
		alarms[r.Name] = 0
	}
	for _, a := range s.alarms {
		if a.ClearedUS == nil {
			alarms[a.Name]++
		}
	}
	lost := int64(0)
	for _, one := range s.sessions {
		lost += one.lost
	}
	s.mu.Unlock()
	for _, list := range []*[]series{&all, &outside} {
		// A process that was started again with the same names is the same series: the
		// one that lives counts, or that was seen last.
		slices.SortFunc(*list, func(a, b series) int {
			switch {
			case a.labels != b.labels:
				return cmp.Compare(a.labels, b.labels)
			case a.ended && !b.ended:
				return 1
			case b.ended && !a.ended:
				return -1
			}
			return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(b.hello, a.hello), cmp.Compare(a.id, b.id))
		})
		*list = slices.CompactFunc(*list, func(a, b series) bool { return a.labels == b.labels })
	}
	out := bufio.NewWriter(w)
	write := func(m metric, all []series) {
		kind := "gauge"
		if m.counter {
			kind = "counter"
		}
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, kind)
		for _, one := range all {
			if v := one.row.V[m.column]; v != unknown {
				fmt.Fprintf(out, "%s{%s} %s\n", m.name, one.labels, strconv.FormatFloat(float64(v)*m.scale, 'g', -1, 64))
			}
		}
	}
	for _, m := range metrics {
		write(m, all)
	}
	write(processMetric, outside)
	fmt.Fprint(out, "# HELP ashlar_alarms Alarms that are raised.\n# TYPE ashlar_alarms gauge\n")
	for _, name := range slices.Sorted(maps.Keys(alarms)) {
		fmt.Fprintf(out, "ashlar_alarms{name=%s} %d\n", quote(name), alarms[name])
	}
	fmt.Fprintf(out, "# HELP ashlar_lost_samples_total Samples that jobs could not keep until they were stored.\n# TYPE ashlar_lost_samples_total counter\nashlar_lost_samples_total %d\n", lost)
	return out.Flush()
}

// labels names a series: run, since Prometheus owns job; gpu and UUID as NVIDIA's
// exporter has them.
func labels(h *Hello, gpu int) string {
	index := ""
	if gpu != unknown {
		index = strconv.Itoa(gpu)
	}
	return fmt.Sprintf("run=%s,attempt=\"%d\",rank=\"%d\",gpu=%s,UUID=%s,host=%s", quote(h.Run), h.Attempt, h.Rank, quote(index), quote(h.uuid(gpu)), quote(h.Host))
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quote(s string) string { return `"` + escaper.Replace(s) + `"` }
