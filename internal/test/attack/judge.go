package attack

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode"
)

// Sums are the bytes of each device's segments and of their allocated blocks.
type Sums map[int64][2]uint64

// sums adds up a snapshot; nil if one of its parts is not as it should be.
func sums(v *Dict) Sums {
	out := Sums{}
	segments, ok := v.Get("segments").(*List)
	if !ok {
		return nil
	}
	for _, s := range segments.Items {
		s, ok := s.(*Dict)
		if !ok || twice(s) {
			return nil
		}
		device, ok0 := s.Get("device").(int64)
		total, ok1 := number(s.Get("total_size"))
		blocks, ok2 := s.Get("blocks").(*List)
		if !ok0 || !ok1 || !ok2 {
			return nil
		}
		sum := out[device]
		sum[0] += total
		for _, b := range blocks.Items {
			b, ok := b.(*Dict)
			if !ok || twice(b) {
				return nil
			}
			size, ok := number(b.Get("size"))
			if !ok {
				return nil
			}
			if b.Get("state") == "active_allocated" {
				sum[1] += size
			}
		}
		out[device] = sum
	}
	return out
}

func twice(d *Dict) bool {
	seen := map[any]bool{}
	for _, k := range d.Keys {
		if seen[k] {
			return true
		}
		seen[k] = true
	}
	return false
}

func number(v any) (uint64, bool) {
	switch v := v.(type) {
	case int64:
		return uint64(v), v >= 0
	case *big.Int:
		return v.Uint64(), v.IsUint64()
	}
	return 0, false
}

// Result is what a command made of a case.
type Result struct {
	Args           []string
	Code           int // -1 if a signal ended it
	Stdout, Stderr string
	Files          map[string][]byte // that it wrote
	CPU            time.Duration     // 0 if not measured
	Memory         int64             // bytes; 0 if not measured
	Killed         bool              // it used up its time
	Cut            bool              // Stdout is only the beginning
}

// The budget: beside these, what each byte adds.
const (
	baseMemory    = 256 << 20
	refusedMemory = 512 << 20
	baseTime      = 20 * time.Second
	timePerByte   = 100 * time.Nanosecond // 10 s for 100 MB
)

// Time is how long a case may take on one core.
func (c *Case) Time() time.Duration { return baseTime + time.Duration(c.Unpacked)*timePerByte }

// Judge returns what is wrong with a result.
func (c *Case) Judge(r *Result) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, word := range []string{"panic:", "fatal error:", "goroutine ", "a fault in ashlar"} {
		if i := strings.Index(r.Stderr+r.Stdout, word); i >= 0 {
			add("crash: %.300s", (r.Stderr + r.Stdout)[i:])
			return wrong
		}
	}
	switch {
	case r.Killed || r.CPU > c.Time():
		add("time: %v of %v", r.CPU, c.Time())
		return wrong
	case r.Code < 0 || r.Code > 2 && !(r.Code == 3 && r.Args[0] == "plan"):
		add("exit code %d", r.Code)
	case r.Code == 2 && c.Answered:
		add("refused: %.200s", r.Stderr)
	}
	limit := baseMemory + 2*c.Unpacked
	if r.Code == 2 {
		limit = refusedMemory
	}
	if r.Memory > limit {
		add("memory: %d MB of %d MB", r.Memory>>20, limit>>20)
	}
	c.judgeText(r, add)
	for name, data := range r.Files {
		if strings.HasSuffix(name, ".html") && strings.Contains(string(data), Marker) {
			add("the page has a tag of the file")
		}
	}
	return wrong
}

func (c *Case) judgeText(r *Result, add func(string, ...any)) {
	for _, text := range []string{r.Stdout, r.Stderr} {
		for _, char := range text {
			if char != '\n' && !unicode.IsPrint(char) || char == unicode.ReplacementChar && !strings.Contains(strings.Join(r.Args, " "), "--json") {
				add("%U is printed", char)
				break
			}
		}
	}
	if r.Code == 2 && r.Stderr == "" {
		add("no word about the failure")
	}
	for _, line := range strings.Split(strings.TrimSuffix(r.Stderr, "\n"), "\n") {
		if r.Stderr != "" && !strings.HasPrefix(line, "ashlar: ") {
			add("not one line: %.200q", line)
			break
		}
	}
	if asksJSON(r.Args) && !r.Cut {
		c.judgeJSON(r, add)
	}
}

func asksJSON(args []string) bool {
	for _, a := range args {
		if a == "--json" {
			return true
		}
	}
	return false
}

func (c *Case) judgeJSON(r *Result, add func(string, ...any)) {
	var doc struct {
		Error    string `json:"error"`
		Snapshot *struct {
			Contradictions []string       `json:"contradictions"`
			Truncated      map[string]any `json:"truncated"`
			Devices        []struct {
				Device    *int64 `json:"device"`
				Reserved  uint64 `json:"reserved_bytes"`
				Allocated uint64 `json:"allocated_bytes"`
			} `json:"devices"`
		} `json:"snapshot"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil {
		add("not JSON: %v", err)
		return
	}
	if r.Code == 2 && doc.Error == "" && r.Args[0] != "verify" && r.Args[0] != "check" {
		add("a document without an error")
	}
	if doc.Snapshot == nil || c.Sums == nil || doc.Snapshot.Truncated != nil {
		return
	}
	for _, d := range doc.Snapshot.Devices {
		if d.Device == nil {
			continue
		}
		want := c.Sums[*d.Device]
		if d.Reserved != want[0] {
			add("sum: device %d has %d bytes reserved, the file %d", *d.Device, d.Reserved, want[0])
		}
		if d.Allocated != want[1] && len(doc.Snapshot.Contradictions) == 0 {
			add("sum: device %d has %d bytes allocated, the file %d, and nothing is said", *d.Device, d.Allocated, want[1])
		}
	}
}
