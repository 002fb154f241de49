package message

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// posted is one text of testdata/public.jsonl: error messages as people posted
// them, and the numbers in them, read by eye, in the units of the text.
type posted struct {
	Source  string // where it was posted
	PyTorch string // the version, where the poster gives it
	Text    string
	Want    []struct {
		Platform, Backend, Library                          string
		Device, Rank                                        *int
		PID                                                 int
		Tried, Total, Free, Limit, Allocated, Active, Pools string
		Reserved, Unallocated, Other, Self                  string
		Processes                                           map[string]string
	}
}

// TestPublic: every number of every posted message is read, and nothing else is.
//
//	form                                          PyTorch      back ends                messages
//	cuda runtime error (2)                        up to 1.0    CUDA                     2
//	(GPU 0; ... cached)                           1.0 - 1.3    CUDA                     11
//	(GPU 0; ... reserved in total by PyTorch)     1.4 - 1.9    CUDA, XPU (Intel's)      25
//	... If reserved memory is >> ...              1.10 - 2.0   CUDA                     22
//	total capacty of                              2.1          CUDA                     16
//	total capacity of                             2.2 - 2.9    CUDA, HIP, XPU           58
//	GPU, and the text ends                        2.3          CUDA                     3
//	PYTORCH_ALLOC_CONF                            2.10         CUDA                     1
//	optimizing-memory-usage...                    2.11 on      CUDA                     2
//	(NPU 0; ... current active                    any          NPU                      8
//	MPS allocated ... other allocations           1.13 on      MPS, in GB and in GiB    21
//	Invalid buffer size                           1.13 on      MPS                      6
//	Allocation on device                          2.0 on       CUDA, cudaMallocAsync    7
//	more than 1EB                                 1.9 on       CUDA, NPU                2
//	NVML_SUCCESS == r INTERNAL ASSERT FAILED      2.1 on       CUDA                     3
//	the driver's and libraries' own               any          CUDA, HIP, Level Zero    16
//
// Nobody seems to have posted 2.12's rejections yet; ranks_test.go has them as the
// sources print them.
func TestPublic(t *testing.T) {
	n := 0
	for _, p := range jsonl.Must[posted](t, "testdata/public.jsonl") {
		n += len(p.Want)
		all, _ := Parse(p.Text)
		check(t, p.Text, all)
		if len(all) != len(p.Want) {
			t.Errorf("%s: %d messages of %d", p.Source, len(all), len(p.Want))
			continue
		}
		for i, o := range all {
			for _, wrong := range p.differences(i, o) {
				t.Errorf("%s: %s\nin %q", p.Source, wrong, o.Text)
			}
		}
	}
	if n < 150 {
		t.Errorf("%d messages", n)
	}
}

// differences says what o has that message i of p has not, and the reverse.
func (p *posted) differences(i int, o *OOM) (all []string) {
	want := p.Want[i]
	differ := func(what string, got, want any) {
		if got != want {
			all = append(all, fmt.Sprintf("%s is %v, not %v", what, want, got))
		}
	}
	number := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	backend := Native
	if want.Backend != "" {
		backend = want.Backend
	} else if want.Library != "" {
		backend = Driver
	}
	differ("backend", o.Backend, backend)
	differ("platform", o.Platform, want.Platform)
	differ("library", o.Library, want.Library)
	differ("device", o.Device, number(want.Device))
	differ("rank", o.Rank, number(want.Rank))
	differ("pid", o.PID, want.PID)
	size := func(what string, got *units.Range, want string) {
		if wrong := wrongSize(got, want); wrong != "" {
			all = append(all, what+" "+wrong)
		}
	}
	size("tried", o.TriedBytes, want.Tried)
	size("total", o.TotalBytes, want.Total)
	size("free", o.FreeBytes, want.Free)
	size("limit", o.LimitBytes, want.Limit)
	size("allocated", o.AllocatedBytes, want.Allocated)
	size("active", o.ActiveBytes, want.Active)
	size("private pools", o.PrivatePoolBytes, want.Pools)
	size("reserved", o.ReservedBytes, want.Reserved)
	size("unallocated", o.ReservedUnallocatedBytes, want.Unallocated)
	size("other allocations", o.OtherBytes, want.Other)
	others := 0
	for _, q := range o.Processes {
		if q.Self {
			size("this process", &q.Bytes, want.Self)
			want.Self = ""
			continue
		}
		others++
		size(fmt.Sprint("process ", q.PID), &q.Bytes, want.Processes[strconv.Itoa(q.PID)])
	}
	differ("other processes", others, len(want.Processes))
	size("this process", nil, want.Self)
	if p.PyTorch != "" && !covers(o.Version, p.PyTorch) {
		all = append(all, "version "+p.PyTorch+", not "+o.Version)
	}
	return all
}

// wrongSize reckons a size as printed, all units being powers of 1024, and says
// how the range differs from it.
func wrongSize(got *units.Range, printed string) string {
	switch {
	case got == nil && printed == "":
		return ""
	case got == nil:
		return "was not read, is " + printed
	case printed == "":
		return fmt.Sprintf("is not in the text, %d bytes were read", got.Mid)
	case printed == "1 EB": // "more than 1EB"
		if got.Low != 1<<60 {
			return "is more than 1 EB"
		}
		return ""
	}
	number, unit, _ := strings.Cut(printed, " ")
	bits := map[string]int{"bytes": 0, "KiB": 10, "MiB": 20, "MB": 20, "GiB": 30, "GB": 30}[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return err.Error()
	}
	scale := float64(uint64(1) << bits)
	half := 0.0
	if _, decimals, ok := strings.Cut(number, "."); ok {
		half = 0.5
		for range decimals {
			half /= 10
		}
	}
	low, high := (value-half)*scale, (value+half)*scale
	if strings.HasSuffix(unit, "iB") { // PyTorch's own: 1024 of the unit below, and not more, are one of this
		low, high = max(low, scale), min(high, 1024*scale)
		if unit == "GiB" {
			high = (value + half) * scale
		}
	}
	const byteOrSo = 2
	if float64(got.Low) < low-byteOrSo || float64(got.Low) > low+byteOrSo || float64(got.High) < high-byteOrSo || float64(got.High) > high+byteOrSo {
		return fmt.Sprintf("is %s, %d to %d bytes were read", printed, got.Low, got.High)
	}
	return ""
}

// covers reports whether a guess like "2.2-2.10", "2.11+" or "up to 1.0" is open
// or includes a version.
func covers(guess, version string) bool {
	if guess == "" {
		return true
	}
	order := func(v string) int {
		major, minor, _ := strings.Cut(v, ".")
		a, _ := strconv.Atoi(major)
		b, _ := strconv.Atoi(minor)
		return a*100 + b
	}
	first, last, isRange := strings.Cut(guess, "-")
	switch {
	case strings.HasSuffix(guess, "+"):
		return order(strings.TrimSuffix(guess, "+")) <= order(version)
	case strings.HasPrefix(guess, "up to "):
		return order(version) <= order(strings.TrimPrefix(guess, "up to "))
	case !isRange:
		last = first
	}
	return order(first) <= order(version) && order(version) <= order(last)
}

// TestPublicLogs: pairs of posted messages, broken into lines as terminals and
// loggers break them, with what launchers and loggers put before each line, and
// the lines of two ranks in turns.
func TestPublicLogs(t *testing.T) {
	var all []posted
	for _, p := range jsonl.Must[posted](t, "testdata/public.jsonl") {
		if len(p.Want) == 1 && p.Want[0].Rank == nil && p.Want[0].PID == 0 && !strings.ContainsAny(p.Text, "\n`*>#") && len(p.Text) > 100 {
			all = append(all, p)
		}
	}
	prefixes := []string{
		"[rank%d]: ", "[default%d]:", "%d: ", "[1,%d]<stderr>:", "(Worker rank=%d pid=7) ERROR 04-19 12:21:04 [core.py:1134] ",
		"\x1b[36m[rank%d]:\x1b[0m \x1b[31m",
	}
	for i := range all {
		prefix, width := prefixes[i%len(prefixes)], 60+17*(i%4)
		pair := []posted{all[i], all[(i+1)%len(all)]}
		var lines [2][]string
		for rank, p := range pair {
			for _, l := range wrap(p.Text, width, i%2 == 0) {
				lines[rank] = append(lines[rank], fmt.Sprintf(prefix, rank)+l)
			}
		}
		var log strings.Builder
		for k := range max(len(lines[0]), len(lines[1])) {
			for _, own := range lines {
				if k < len(own) {
					log.WriteString(own[k] + "\n")
				}
			}
		}
		found, _ := Parse(log.String())
		slices.SortStableFunc(found, func(a, b *OOM) int { return a.Rank - b.Rank })
		if len(found) != len(pair) {
			t.Errorf("%d messages of %d in\n%s", len(found), len(pair), log.String())
			continue
		}
		for rank, o := range found {
			p := pair[rank]
			p.Want[0].Rank, p.Want[0].PID = &rank, o.PID
			for _, wrong := range p.differences(0, o) {
				t.Errorf("rank %d: %s in\n%s", rank, wrong, log.String())
			}
			p.Want[0].Rank, p.Want[0].PID = nil, 0
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d of the posted messages", len(all))
	}
}
