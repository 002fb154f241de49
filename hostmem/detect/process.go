package detect

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/proc"
)

// Process finds out which malloc a process uses. Errors that a caller may act
// on are [proc.ErrNoProcess], [proc.ErrPermission] and [ErrKernelThread].
func Process(pid int) (*Result, error) {
	r, err := Alone(pid)
	if err != nil {
		return nil, err
	}
	r.Children = children(pid)
	return r, nil
}

// Alone is [Process] without the descendants, which takes a fraction of the
// time.
func Alone(pid int) (*Result, error) { return look(pid, true) }

// ErrKernelThread says that a process is a part of the kernel.
var ErrKernelThread = errors.New("a kernel thread: it has no malloc")

// While the loader is at work, which is seldom and short, its list is not
// whole.
const (
	loadingTries = 50
	loadingPause = 10 * time.Millisecond
)

// look answers for one process, without its children.
func look(pid int, withMemory bool) (*Result, error) {
	for try := 1; ; try++ {
		r, loading, err := lookOnce(pid, withMemory)
		if err != nil || !loading || try == loadingTries {
			return r, err
		}
		time.Sleep(loadingPause)
	}
}

func lookOnce(pid int, withMemory bool) (r *Result, loading bool, err error) {
	stat, err := proc.ReadStat(pid)
	if err != nil {
		return nil, false, err
	}
	if stat.Ended() {
		return nil, false, fmt.Errorf("process %d has ended: %w", pid, proc.ErrNoProcess)
	}
	r = &Result{PID: pid, Notes: []string{}, Children: []Child{}}
	if r.Executable, _, err = proc.Executable(pid); err != nil {
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, proc.ErrNoProcess) {
			err = fmt.Errorf("process %d is %w", pid, ErrKernelThread)
		}
		return nil, false, err
	}
	// Memory first: what is read later may bring pages in.
	usage, err := proc.ReadSmaps(pid)
	if err != nil {
		return nil, false, err
	}
	r.Memory = newMemory(usage)
	if r.Command, err = proc.Arguments(pid); err != nil {
		return nil, false, err
	}
	tasks, err := proc.Threads(pid)
	if err != nil {
		return nil, false, err
	}
	r.Threads = len(tasks)

	t, err := attach(pid, withMemory)
	if err != nil {
		return nil, false, err
	}
	defer t.close()
	var used *object
	r.Finding, used = t.find()
	r.Others = t.others(used, r.Allocator)
	r.Env, r.IgnoredEnv = t.variables(r.Finding, used, r.Others)
	if r.Allocator == Glibc {
		r.Arenas, r.ArenaBytes = t.arenas(usage)
	}
	r.Notes = append(r.Notes, t.notes(r, used, tasks)...)
	return r, t.loading, nil
}

// Child is a descendant of the process, in short.
type Child struct {
	PID        int      `json:"pid"`
	Command    []string `json:"command"`
	Executable string   `json:"executable"`
	Finding
	RSSBytes uint64 `json:"rss_bytes"`
}

// maxChildren is how many descendants are looked into.
const maxChildren = 64

// children looks into the descendants. Those that end meanwhile or belong to
// others are left out.
func children(pid int) []Child {
	list := []Child{}
	tree, err := proc.Tree(pid)
	if err != nil {
		return list
	}
	for _, kid := range tree[1:] {
		if len(list) == maxChildren {
			break
		}
		r, err := look(kid, true)
		if err != nil {
			continue
		}
		list = append(list, Child{
			PID: kid, Command: r.Command, Executable: r.Executable, Finding: r.Finding, RSSBytes: r.RSSBytes,
		})
	}
	return list
}
