package watch

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Version is that of the messages.
const Version = 1

// The numbers of a sample, in the order in which they are stored.
const (
	Seq = iota
	Time
	Step
	StepTime
	Allocated
	Active
	Reserved
	Requested
	InactiveSplit
	Pinned
	PeakAllocated
	PeakReserved
	DeviceFree
	DeviceTotal
	Limit
	HostRSS
	Retries
	OOMs
	DeviceAllocs
	DeviceFrees
	columns
)

// Names are the names of the numbers in messages, alarms and tables.
var Names = [columns]string{
	"seq", "time_us", "step", "step_us", "allocated", "active", "reserved", "requested", "inactive_split", "pinned",
	"peak_allocated", "peak_reserved", "device_free", "device_total", "limit", "host_rss",
	"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free",
}

// unknown is the value of a number that a job did not send.
const unknown = -1

// maxNumber is the largest number that JSON carries exactly everywhere.
const maxNumber = 1 << 53

// Row is a sample of one GPU. Its GPU is -1 if the job has none yet.
type Row struct {
	GPU int
	V   [columns]int64
}

func (r *Row) time() time.Time { return time.UnixMicro(r.V[Time]) }

// Headroom is how many bytes the job can still allocate on the GPU: what is free
// on the device or cached, but no more than the limit leaves.
func (r *Row) Headroom() int64 {
	v := &r.V
	if v[DeviceFree] == unknown || v[Reserved] == unknown || v[Allocated] == unknown {
		return unknown
	}
	free := v[DeviceFree] + max(0, v[Reserved]-v[Allocated])
	if v[Limit] != unknown {
		free = min(free, max(0, v[Limit]-v[Allocated]))
	}
	return free
}

// Hello is what a job says of itself once.
type Hello struct {
	V         int               `json:"v"`
	Session   string            `json:"session"`
	Run       string            `json:"run"`
	Attempt   int               `json:"attempt"`
	Rank      int               `json:"rank"`
	LocalRank int               `json:"local_rank"`
	World     int               `json:"world"`
	Host      string            `json:"host"`
	PID       int               `json:"pid"`
	Torch     string            `json:"torch"`
	Settings  map[string]string `json:"settings"`
	Devices   []Device          `json:"devices"`
	Commit    string            `json:"commit"`
	Tags      map[string]string `json:"tags"`
	Allow     []string          `json:"allow"`
	Source    Source            `json:"source,omitempty"` // the server's; empty: the job
	TimeUS    int64             `json:"time_us"`          // when it first came; the server's
	Ended     bool              `json:"ended"`            // the job has said so; the server's
}

// Source says who counts the memory of a process.
type Source string

// The sources.
const (
	FromJob  Source = "job"
	FromNVML Source = "nvml"
)

func (h *Hello) source() Source {
	if h.Source == "" {
		return FromJob
	}
	return h.Source
}

// Device is a GPU of a job.
type Device struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	Total int64  `json:"total_bytes"`
}

// uuid returns the UUID of a GPU, or nothing.
func (h *Hello) uuid(gpu int) string {
	for _, d := range h.Devices {
		if d.Index == gpu {
			return d.UUID
		}
	}
	return ""
}

// How long a name may be, and a setting; longer ones are cut.
const (
	maxText    = 200
	maxSetting = 1000
)

// maxHello is how long a hello may be altogether.
const maxHello = 16 << 10

// check refuses a hello that cannot be kept, and cuts what is too long.
func (h *Hello) check() error {
	if !validSession(h.Session) {
		return fmt.Errorf("the session %.40q is none: use 8 to 64 letters, digits, - and _", h.Session)
	}
	if len(h.Devices) > 64 || len(h.Tags) > 64 || len(h.Settings) > 64 || len(h.Allow) > 64 {
		return fmt.Errorf("a list of the hello has more than 64 entries")
	}
	texts := []*string{&h.Run, &h.Host, &h.Torch, &h.Commit}
	for i := range h.Devices {
		texts = append(texts, &h.Devices[i].Name, &h.Devices[i].UUID)
	}
	for i := range h.Allow {
		texts = append(texts, &h.Allow[i])
	}
	for _, s := range texts {
		*s = clean(*s, maxText)
	}
	h.Tags, h.Settings = cleanMap(h.Tags, maxText), cleanMap(h.Settings, maxSetting)
	if h.Run == "" {
		h.Run = "unnamed"
	}
	if text, err := json.Marshal(h); err != nil || len(text) > maxHello {
		return fmt.Errorf("the hello has more than %d KiB", maxHello>>10)
	}
	return nil
}

func cleanMap(m map[string]string, most int) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for name, value := range m {
		out[clean(name, maxText)] = clean(value, most)
	}
	return out
}

// clean takes out what a terminal would obey, and cuts, between characters.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

func validSession(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// samples is the body of POST /v1/samples.
type samples struct {
	V       int       `json:"v"`
	Session string    `json:"session"`
	Samples []numbers `json:"samples"`
	Lost    int64     `json:"lost"` // that the job could not keep
	End     bool      `json:"end"`  // the job ends
}

// numbers is a sample as it comes. What should be a number and is none is NaN, so
// that it is refused without the samples beside it.
type numbers map[string]*float64

func (n *numbers) UnmarshalJSON(data []byte) error {
	var all map[string]*float64
	if json.Unmarshal(data, &all) == nil {
		*n = all
		return nil
	}
	var fields map[string]json.RawMessage
	*n = numbers{}
	if json.Unmarshal(data, &fields) != nil {
		return nil // no object: it has no seq, and is refused
	}
	for name, text := range fields {
		var v *float64
		if json.Unmarshal(text, &v) != nil {
			wrong := math.NaN()
			if name != "gpu" && !slices.Contains(Names[:], name) {
				wrong = 0 // of a later version
			}
			v = &wrong
		}
		(*n)[name] = v
	}
	return nil
}

func parseSamples(body []byte) (samples, error) {
	var s samples
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("the body is not what docs/watch.md describes: %w", err)
	}
	if s.V < 1 || !validSession(s.Session) || s.Lost < 0 || s.Lost > maxNumber {
		return s, fmt.Errorf("v, session or lost is missing or wrong")
	}
	return s, nil
}

// row reads a sample. It reports whether there were fields that only a later
// version knows.
func row(from numbers) (r Row, later bool, err error) {
	r.GPU = unknown
	for i := range r.V {
		r.V[i] = unknown
	}
	for name, p := range from {
		if p == nil {
			continue
		}
		if v := *p; v < 0 || v > maxNumber || v != math.Trunc(v) {
			return r, later, fmt.Errorf("%.40q is %v: it must be a whole number from 0 to 2^53", name, v)
		}
		if name == "gpu" {
			if *p >= 1024 {
				return r, later, fmt.Errorf("there is no gpu %v", *p)
			}
			r.GPU = int(*p)
		} else if i := slices.Index(Names[:], name); i >= 0 {
			r.V[i] = int64(*p)
		} else {
			later = true
		}
	}
	if r.V[Seq] < 1 || r.V[Time] == unknown {
		return r, later, fmt.Errorf("a sample has no seq from 1 on, or no time_us")
	}
	return r, later, nil
}
