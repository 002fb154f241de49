package main

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
)

// sums are the three numbers that front_count.h keeps of a set of blocks.
type sums struct {
	Blocks    int64 `json:"blocks"`
	Bytes     int64 `json:"bytes"`
	Requested int64 `json:"requested_bytes"`
}

// counts are the statistics of the front, as in bridge.h; by kind of pool:
// small, large, and for peaks both together.
type counts struct {
	Live       [2]sums `json:"live"`
	Up         [2]sums `json:"up"`
	Peak       [3]sums `json:"peak"`
	ActivePeak [3]sums `json:"active_peak"`
	Waiting    [2]sums `json:"waiting"`
	Live0      [2]sums `json:"live_at_reset"`
	Waiting0   [2]sums `json:"waiting_at_reset"`
}

// frontState is what the front did and holds.
type frontState struct {
	Counts       counts `json:"counts"`
	Hits         uint64 `json:"hits"`
	Misses       uint64 `json:"misses"`
	Held         uint64 `json:"held_frees"`
	Queued       uint64 `json:"queued_frees"`
	Direct       uint64 `json:"direct_frees"`
	Returned     uint64 `json:"returned_blocks"`
	Turns        uint64 `json:"lock_turns"`
	Wasted       uint64 `json:"lock_turns_wasted"`
	Unknown      uint64 `json:"unknown_frees"`
	KeepBlocks   uint64 `json:"keep_blocks"`
	KeepBytes    uint64 `json:"keep_bytes"`
	StackBlocks  uint64 `json:"stack_blocks"`
	UndoneBlocks uint64 `json:"undone_blocks"`
	QueuedBlocks uint64 `json:"queued_blocks"`
	Off          bool   `json:"off"`
	Asking       bool   `json:"asking"` // freed blocks wait for other streams
}

// sumKinds adds up both kinds of pool.
func sumKinds(s [2]sums) sums {
	return sums{s[0].Blocks + s[1].Blocks, s[0].Bytes + s[1].Bytes, s[0].Requested + s[1].Requested}
}

// merge replaces what the engine knows of blocks that are out by what the front
// knows: to the engine a block that the front holds is still in use.
func (c *counts) merge(s alloc.Stats) alloc.Stats {
	type pick func(sums) int64
	blocks := func(x sums) int64 { return x.Blocks }
	bytes := func(x sums) int64 { return x.Bytes }
	requested := func(x sums) int64 { return x.Requested }
	fill := func(to *alloc.PoolStat, of pick, active bool) {
		for i, st := range [3]*alloc.Stat{&to.Small, &to.Large, &to.All} {
			at := func(per [2]sums) int64 {
				if i == 2 {
					return of(sumKinds(per))
				}
				return of(per[i])
			}
			st.Current, st.Peak, st.Allocated = at(c.Live), of(c.Peak[i]), at(c.Up)
			st.Freed = st.Allocated + at(c.Live0) - st.Current
			if active {
				st.Current += at(c.Waiting)
				st.Peak = max(st.Peak, of(c.ActivePeak[i]))
				st.Freed += at(c.Waiting0) - at(c.Waiting)
			}
		}
	}
	fill(&s.Allocation, blocks, false)
	fill(&s.AllocatedBytes, bytes, false)
	fill(&s.Active, blocks, true)
	fill(&s.ActiveBytes, bytes, true)
	fill(&s.RequestedBytes, requested, true)
	return s
}

// stats returns the statistics as if there were no front.
func (d *device) stats() alloc.Stats {
	var all alloc.Stats
	d.flush(func(s *alloc.Stats) {
		c := d.lib.front.read(d.index).Counts
		all = c.merge(*s)
	})
	return all
}

// nested gives flat keys the shape of torch._C._cuda_memoryStats().
func nested(flat map[string]int64) map[string]any {
	root := map[string]any{}
	for key, value := range flat {
		at := root
		parts := strings.Split(key, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = value
	}
	return root
}

// stats returns the statistics of a device with its tenants, those that are gone included.
func (l *library) stats(n int) (map[string]int64, error) {
	if _, err := l.device(n); err != nil {
		return nil, err
	}
	l.mu.Lock() // one that is closed meanwhile counts once
	all, err := l.ofDevice(n)
	closed := maps.Clone(l.closed[n])
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return addClosed(sumStats(all), closed), nil
}

func (l *library) statsJSON(n int) (string, error) {
	d, err := l.device(n)
	if err != nil {
		return "", err
	}
	flat, err := l.stats(n)
	if err != nil {
		return "", err
	}
	doc := nested(flat)
	doc["ashlar"] = d.tierStats(true)
	text, err := json.Marshal(doc)
	return string(text), err
}

// sumStats adds the statistics of tenants up. The peaks are the sums of theirs,
// which they need not have had at the same moment.
func sumStats(all []*device) map[string]int64 {
	sum := all[0].stats().Map()
	for _, d := range all[1:] {
		for key, value := range d.stats().Map() {
			if key != "max_split_size" { // a setting
				sum[key] += value
			}
		}
	}
	return sum
}

// keepCounts keeps beyond the end of a tenant what it has counted, and the peaks of the device before it: they only ever rise, until
// they are reset. The lock is held.
func (l *library) keepCounts(n int, own, before map[string]int64) {
	if l.closed[n] == nil {
		l.closed[n] = map[string]int64{}
	}
	for key, value := range own {
		switch {
		case isPeak(key):
			l.closed[n][key] = before[key]
		case key != "max_split_size" && !strings.HasSuffix(key, ".current"):
			l.closed[n][key] += value
		}
	}
}

func isPeak(key string) bool { return strings.HasSuffix(key, ".peak") }

// addClosed adds what tenants that are gone have counted.
func addClosed(sum, closed map[string]int64) map[string]int64 {
	for key, value := range closed {
		if isPeak(key) {
			sum[key] = max(sum[key], value)
		} else {
			sum[key] += value
		}
	}
	return sum
}

// resetClosed forgets the peaks of tenants that are gone, or all but those.
func (l *library) resetClosed(n int, peaks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.closed[n], func(key string, _ int64) bool { return isPeak(key) == peaks })
}

func (l *library) resetPeaks(n int) error {
	l.resetClosed(n, true)
	all, err := l.ofDevice(n)
	for _, d := range all {
		// In this order no peak of blocks is above that of reserved memory.
		d.alloc.ResetPeakStats()
		d.flush(func(*alloc.Stats) { l.front.resetPeaks(d.index) })
	}
	return err
}

func (l *library) resetSums(n int) error {
	l.resetClosed(n, false)
	all, err := l.ofDevice(n)
	for _, d := range all {
		d.alloc.ResetAccumulatedStats()
		d.flush(func(*alloc.Stats) { l.front.resetSums(d.index) })
	}
	return err
}

// frontJSON is the document of ashlar_front_counters_json. It changes nothing:
// the engine's own numbers still count what the front holds.
func (l *library) frontJSON(n int) (string, error) {
	d, err := l.device(n)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(struct {
		frontState
		Engine map[string]any `json:"engine"`
	}{l.front.read(n), nested(d.alloc.Stats().Map())})
	return string(text), err
}
