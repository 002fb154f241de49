package attack

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Sweep returns the cases that are the same for every seed: each number of each
// message, and each size of a segment, with every absurd value; and requests of every
// size that failed.
func (g *Generator) Sweep() []*Case {
	var all []*Case
	for i, text := range messages {
		for _, at := range decimals.FindAllStringIndex(text, -1) {
			for _, n := range absurdNumbers {
				data := []byte(text[:at[0]] + n + text[at[1]:] + "\n")
				what := fmt.Sprintf("message %d with %s at %d", i, n, at[0])
				all = append(all, &Case{What: what, Name: "a.log", Data: data, Unpacked: int64(len(data)), Commands: []string{"explain FILE"}})
			}
		}
	}
	for _, key := range []string{"total_size", "address", "allocated_size", "active_size", "requested_size"} {
		for _, size := range absurdSizes {
			for _, expandable := range []bool{false, true} {
				all = append(all, g.absurdSegment(key, size, expandable))
			}
		}
	}
	for size := int64(1); size < math.MaxInt64/4; size *= 4 {
		all = append(all, failedRequest(size))
	}
	for _, key := range []string{"large_segment_size_mb", "max_split_size_mb", "max_non_split_rounding_mb"} {
		for _, mib := range []uint64{1 << 24, 1 << 40, math.MaxUint64 >> 20, math.MaxUint64} {
			for _, expandable := range []string{"False", "True"} {
				all = append(all, hugeSetting(fmt.Sprintf("%s:%d,expandable_segments:%s", key, mib, expandable))...)
			}
		}
	}
	return all
}

// hugeSetting is a snapshot whose settings have a size that no device has, where the simulated device ends
// no request: without a limit, and where the need is asked for. No request passes, nor what lived before the first event.
func hugeSetting(text string) (all []*Case) {
	const at, mib = int64(0x7f0000000000), int64(1 << 20)
	before := dict("address", at+64*mib, "total_size", 20*mib, "stream", int64(0), "segment_type", "large", "blocks", &List{Items: []any{
		dict("address", at+64*mib, "size", 3*mib, "requested_size", 3*mib, "state", "active_allocated"),
		dict("address", at+67*mib, "size", 17*mib, "requested_size", int64(0), "state", "inactive"),
	}})
	data := JSON(dict("segments", &List{Items: []any{before}}, "allocator_settings", dict("PYTORCH_CUDA_ALLOC_CONF", text), "device_traces", &List{Items: []any{&List{Items: []any{
		dict("action", "segment_alloc", "addr", at, "size", 20*mib, "stream", int64(0)),
		dict("action", "alloc", "addr", at, "size", 3*mib, "stream", int64(0)),
	}}}}))
	for _, command := range []string{"tenants --limit 8GiB --tenant a=FILE --tenant b=GOOD --json", "whatif FILE --set " + text + " --limit none --device-memory none --json"} {
		all = append(all, &Case{What: "settings " + text, Name: "a.json", Data: data, Unpacked: int64(len(data)), Commands: []string{command}})
	}
	return all
}

// failedRequest is a snapshot of a program that asked for so much in vain, which every
// command has to answer: a wrong shape asks for any size.
func failedRequest(size int64) *Case {
	const at, mib = int64(0x7f0000000000), int64(1 << 20)
	v := dict("segments", &List{}, "device_traces", &List{Items: []any{&List{Items: []any{
		dict("action", "segment_alloc", "addr", at, "size", 20*mib, "stream", int64(0)),
		dict("action", "alloc", "addr", at, "size", 15*mib, "stream", int64(0)),
		dict("action", "free_requested", "addr", at, "size", 15*mib, "stream", int64(0)),
		dict("action", "free_completed", "addr", at, "size", 15*mib, "stream", int64(0)),
		dict("action", "oom", "addr", 50*1024*mib, "device_free", 50*1024*mib, "size", size, "stream", int64(0)),
	}}}})
	data := JSON(v)
	return &Case{
		What: fmt.Sprintf("a failed request of %d", size), Name: "a.json", Data: data, Unpacked: int64(len(data)), Answered: true,
		Commands: []string{"policies FILE --budget 1s", "report FILE -o OUT.html", "explain FILE --json", "tune FILE", "whatif FILE --set expandable_segments:True", "policies FILE --device-memory none --json --budget 1s"},
	}
}

var (
	absurdNumbers = []string{"17179869184.00", "8589934592.00", "0.00", "-1.00", "999999999999999999999999.99"}
	absurdSizes   = []int64{-1, -2 << 20, 0, 1 << 49, 1 << 62, math.MaxInt64, math.MinInt64}
)

// absurdSegment is a snapshot without events, with one segment whose number is absurd.
func (g *Generator) absurdSegment(key string, size int64, expandable bool) *Case {
	v := clone(shortened(g.trees[0], 0)).(*Dict)
	for _, s := range list(v.Get("segments"))[:1] {
		if s, ok := s.(*Dict); ok {
			s.Set(key, size)
			s.Set("is_expandable", expandable)
		}
	}
	data := JSON(v)
	return &Case{
		What: fmt.Sprintf("a segment with %s %d, expandable %v", key, size, expandable), Name: "a.json", Data: data, Unpacked: int64(len(data)), Sums: sums(v),
		Commands: []string{"report FILE -o OUT.html", "stats FILE --json", "explain FILE"},
	}
}

// wrap gives some segments sizes whose sum is beyond 64 bits, and changes their other
// fields along with them. It says what it did.
func wrap(r *rand.Rand, v *Dict) string {
	if r.IntN(2) == 0 {
		v.Set("device_traces", &List{})
	}
	segments := list(v.Get("segments"))
	if len(segments) == 0 {
		return "no segments"
	}
	var sum int64
	for _, s := range segments {
		if s, ok := s.(*Dict); ok {
			n, _ := s.Get("total_size").(int64)
			sum += n
		}
	}
	count := 1 + r.IntN(3)
	for range count {
		s, ok := segments[r.IntN(len(segments))].(*Dict)
		if !ok {
			continue
		}
		size := []int64{-1, -512, -2 << 20, -sum, 512 - sum, math.MinInt64, math.MaxInt64 - sum}[r.IntN(7)]
		s.Set("total_size", size)
		s.Set("is_expandable", r.IntN(2) == 0)
		switch blocks := list(s.Get("blocks")); r.IntN(3) {
		case 0:
			s.Set("blocks", &List{})
		case 1:
			if len(blocks) > 0 {
				if last, ok := blocks[len(blocks)-1].(*Dict); ok {
					last.Set("size", size)
				}
			}
		}
	}
	return fmt.Sprintf("sizes of %d segments that wrap", count)
}
