package recorder

import (
	"sort"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// The values of [Facts.Reason].
const (
	OOM    = "oom"    // a request for memory failed
	Signal = "signal" // the process got a signal
	Call   = "call"   // the job called ashlar.dump()
)

// Facts are what a recorder knew when it took a snapshot. Texts are as the file
// has them, and may hold anything.
type Facts struct {
	Version int64  // of the format
	Torch   string // versions
	CUDA    string
	HIP     string

	Reason  string // why the file was written
	Late    bool   // when the exception arrived, not when the request failed
	Note    string // the job's own
	Message string // the text of the OOM error; empty if it never arrived

	// What the job was called, if anybody said so.
	Run     string
	Attempt *int64 // how often the launcher has restarted it
	World   *int64 // how many ranks it has
	Commit  string // of the code
	Tags    map[string]string

	TimeUS *int64 // since the Unix epoch
	PID    *int64
	Rank   *int64
	Device *int   // that failed, else the current one
	Step   *int64 // last begun
	Steps  []StepMark

	// RequestBytes is the request that failed as the allocator rounded it, and
	// SegmentBytes what it asked of the driver for it, which the message shows.
	RequestBytes, SegmentBytes *uint64
	DeviceFreeBytes            *uint64 // at the failure

	// LimitBytes is the process's limit on Device. It is nil both if there is
	// none and if the recorder could not find out; LimitKnown distinguishes these.
	LimitBytes *uint64
	LimitKnown bool

	OOMs       *int64 // failed requests until then
	MaxEntries *int64 // of the history; nil if it was off

	Settings    []Variable          // of the environment, as PyTorch looks at them
	MemoryStats map[int]*stats.Dump // by device
	Devices     []Device

	Extra    trace.Extra // keys of a later version
	Warnings []string
}

// StepMark is the begin of a step.
type StepMark struct {
	Number int64
	TimeUS int64
}

// Variable is a variable of the environment with settings of the allocator.
type Variable struct{ Name, Text string }

// Device is a device that the process could see. Its memory is known only if
// the process used it.
type Device struct {
	Index      int
	Name       string
	Capability string // "9.0"

	TotalMemory           *uint64 // as the properties say, on which limits are based
	FreeBytes, TotalBytes *uint64 // according to the driver
	LimitBytes            *uint64 // as in Facts
	LimitKnown            bool
}

// Conf returns the settings that the environment asked for, from the variable
// that PyTorch takes (spec 11.1). They are in force only if they were set before
// PyTorch looked; what is in force is in the settings of the trace.
func (f *Facts) Conf() (conf string, ok bool) {
	for _, name := range settings.Variables {
		for _, v := range f.Settings {
			if v.Name == name {
				return v.Text, true
			}
		}
	}
	return "", false
}

// StepAt returns the step that was under way at a time of the trace, false if
// none was known to be.
func (f *Facts) StepAt(timeUS int64) (int64, bool) {
	i := sort.Search(len(f.Steps), func(i int) bool { return f.Steps[i].TimeUS > timeUS })
	if i == 0 {
		return 0, false
	}
	return f.Steps[i-1].Number, true
}

// DeviceFacts returns what is known about a device, nil if nothing is.
func (f *Facts) DeviceFacts(index int) *Device {
	for i := range f.Devices {
		if f.Devices[i].Index == index {
			return &f.Devices[i]
		}
	}
	return nil
}
