package proc

import (
	"bytes"
	"os"
)

// Rollup is /proc/PID/smaps_rollup: the memory of one process, counted page by
// page. Reading it takes the kernel time that grows with the memory.
type Rollup struct {
	RSSBytes       uint64
	PSSBytes       uint64
	AnonymousBytes uint64 // not of a file
	LazyFreeBytes  uint64 // given back by MADV_FREE, not yet taken
	HugePageBytes  uint64 // transparent huge pages, anonymous
	SwapBytes      uint64
}

// ReadRollup reads /proc/PID/smaps_rollup. It needs the right to look into the
// process.
func ReadRollup(pid int) (*Rollup, error) {
	data, err := os.ReadFile(path(pid, "smaps_rollup"))
	if err != nil {
		return nil, classify(pid, err)
	}
	var r Rollup
	r.parse(data)
	return &r, nil
}

func (r *Rollup) add(o *Rollup) {
	r.RSSBytes += o.RSSBytes
	r.PSSBytes += o.PSSBytes
	r.AnonymousBytes += o.AnonymousBytes
	r.LazyFreeBytes += o.LazyFreeBytes
	r.HugePageBytes += o.HugePageBytes
	r.SwapBytes += o.SwapBytes
}

func (r *Rollup) parse(data []byte) {
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		r.line(line)
	}
}

// line takes one "Name:   123 kB".
func (r *Rollup) line(line []byte) {
	key, rest, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return
	}
	var field *uint64
	switch string(key) {
	case "Rss":
		field = &r.RSSBytes
	case "Pss":
		field = &r.PSSBytes
	case "Anonymous":
		field = &r.AnonymousBytes
	case "LazyFree":
		field = &r.LazyFreeBytes
	case "AnonHugePages":
		field = &r.HugePageBytes
	case "Swap":
		field = &r.SwapBytes
	default:
		return
	}
	*field = number(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))) << 10
}
