package detect

// The allocators that detect knows. Anything else is Unknown, with the object
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
	Certain    Confidence = "certain" // read out of the process or its symbols
	Likely     Confidence = "likely"  // concluded
	NotCertain Confidence = "unknown"
)

// Finding is which malloc it is and how that was found.
type Finding struct {
	Allocator  string     `json:"allocator"`
	Version    *string    `json:"version"` // nil if unknown
	Object     string     `json:"object"`  // the file that holds it, as the process sees it
	How        string     `json:"how"`
	Confidence Confidence `json:"confidence"`
}

// Variable is an environment variable that is about an allocator.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Ignored is a variable that has no effect, or a part of which has none, or whose
// value is read as another than it looks like.
type Ignored struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Result is all that is known about one process.
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
	Children []Child `json:"children"`
	Growth   *Growth `json:"growth"` // nil unless it was watched
	Exit     *Exit   `json:"exit"`   // nil unless it is a command that ended by itself

	program string // a mark of the program that all this is about
}
