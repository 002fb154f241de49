package tenants

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// The clocks by which runs are played side by side.
const (
	ByEvent = "event" // evenly: all runs are stretched to the length of the longest
	ByTime  = "time"  // by their recorded times
)

// Run is a recorded run that is to be a tenant.
type Run struct {
	Name, File string
	*run.Checked
	Contradictions []string // of the file with itself
	Guarantee      uint64
	Ceiling        uint64 // 0: none
	Priority       int
	// Start is when the run begins: in microseconds, or in calls of the longest run.
	Start float64
	// Repeat is how often it is made, one time after the other; 0 is once.
	Repeat int
}

// Question is what is asked.
type Question struct {
	Limit   uint64
	Runs    []*Run
	Clock   string // ByEvent or ByTime
	SkipOOM bool   // a request that fails is left out; otherwise its run ends
	// Against are the arrangements to compare with: Shared, Hard and MIG.
	Against []string
	GPU     *GPU // for MIG
}

// GPU is a card that can be divided into MIG instances.
type GPU struct {
	Title     string
	Source    string // of the instances
	Instances []Instance
	// Fits reports whether the card can have some of Instances at once.
	Fits func(of []int) bool
}

// Instance is a kind of MIG instance.
type Instance struct {
	Name  string
	Bytes uint64
}

// mostGuaranteed is what a simulated device has addresses for, several times.
const mostGuaranteed = 4 << 40

// InputError is a question that cannot be answered.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

func wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Check returns what is wrong with a question.
func (q *Question) Check() error {
	sum := uint64(0)
	names := map[string]bool{}
	for _, r := range q.Runs {
		switch {
		case names[r.Name]:
			return wrong("there are two tenants %s: give each a name of its own", r.Name)
		case r.Ceiling > 0 && r.Ceiling < r.Guarantee:
			return wrong("tenant %s: the ceiling of %s is below the guarantee of %s", r.Name, units.Size(r.Ceiling), units.Size(r.Guarantee))
		}
		names[r.Name] = true
		sum += r.Guarantee
	}
	switch {
	case len(q.Runs) == 0:
		return wrong("there is no tenant: give --tenant NAME=FILE")
	case q.Limit == 0:
		return wrong("there is no limit: give --limit SIZE")
	case slices.ContainsFunc(q.Runs, func(r *Run) bool { return r.Guarantee > mostGuaranteed }):
		return wrong("a guarantee is above %s: no GPU has as much", units.Size(mostGuaranteed))
	case sum > q.Limit:
		return wrong("the guarantees are %s together, more than the limit of %s: lower them or raise --limit", units.Size(sum), units.Size(q.Limit))
	}
	return nil
}

// checkRuns returns what is wrong with the runs, which takes their programs.
func (q *Question) checkRuns() error {
	for _, r := range q.Runs {
		p := r.Program
		switch {
		case p.Len() == 0:
			return wrong("%s: there are no events to play; record with torch.cuda.memory._record_memory_history()", r.File)
		case q.Clock == ByTime && p.Trace.Events.Time.At(p.Call(0).Event) == trace.NoTime:
			return wrong("%s: the events have no times: use --clock event", r.File)
		}
	}
	return nil
}

// settings returns what a run's allocator is set to: as recorded, with expandable
// segments where they can be had.
func (r *Run) settings() settings.Settings {
	s := r.Program.Settings
	s.PerProcessMemoryFraction = 1
	s.ExpandableSegments = true
	if alloc.MappingProblem(s) != "" {
		s.ExpandableSegments = false
	}
	return s
}

func (r *Run) passes() int { return max(r.Repeat, 1) }
