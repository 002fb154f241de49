package detect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
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

// Watched is [Process] with the growth of its memory in some time. If the process
// begins to run another program meanwhile, the answer is about that one.
func Watched(ctx context.Context, pid int, d time.Duration) (*Result, error) {
	r, err := Process(pid)
	if err != nil {
		return nil, err
	}
	return r.watch(ctx, d)
}

// watch adds growth to what was found.
func (r *Result) watch(ctx context.Context, d time.Duration) (*Result, error) {
	growth, err := watchProcess(ctx, r.PID, d, r.program)
	if err != nil {
		return nil, err
	}
	if growth.Execs > 0 {
		first := r.Executable
		later, err := Process(r.PID)
		switch {
		case err == nil:
			r = later
			r.Notes = append(r.Notes, fmt.Sprintf("it began to run another program while it was watched: %s before, %s at the end; growth is that since then", first, r.Executable))
		case errors.Is(err, proc.ErrNoProcess):
			r.Notes = append(r.Notes, "it began to run another program while it was watched, and ended: growth is that of the last one, all else is about the first")
		default:
			return nil, err
		}
	}
	r.Growth = growth
	return r, nil
}

// Alone is [Process] without the descendants, which takes a fraction of the
// time.
func Alone(pid int) (*Result, error) { return inspect(pid, true) }

// ErrKernelThread says that a process is a part of the kernel.
var ErrKernelThread = errors.New("a kernel thread: it has no malloc")

// While the kernel starts a program or the loader is at work, which is seldom and
// short, not all is there yet.
const (
	loadingTries = 50
	loadingPause = 10 * time.Millisecond
)

// inspect answers for one process, without its children.
func inspect(pid int, withMemory bool) (*Result, error) {
	var before []proc.Mapping
	for try := 1; ; try++ {
		r, t, err := inspectOnce(pid, withMemory)
		if errors.Is(err, proc.ErrPermission) {
			err = refused(pid)
		}
		if err != nil || try == loadingTries {
			return r, err
		}
		// What is not known may be so because the program is just starting. It
		// is the answer when the program waits, and has changed nothing.
		waits := t.state != 'R' && t.state != 'D'
		starting := r.Allocator == Unknown && !(waits && slices.Equal(t.maps, before))
		if !t.loading && !starting {
			return r, nil
		}
		before = t.maps
		time.Sleep(loadingPause)
	}
}

// inspectOnce inspects a process as it is now. The returned target is closed.
func inspectOnce(pid int, withMemory bool) (*Result, *target, error) {
	stat, err := proc.ReadStat(pid)
	if err != nil {
		return nil, nil, err
	}
	r := &Result{PID: pid, Notes: []string{}, Children: []Child{}}
	leader := true // the first thread runs
	if stat.Ended() {
		// The other threads go on: the process is read through one of them.
		zombie := stat
		if pid = proc.LivingThread(r.PID); pid == 0 {
			return nil, nil, endedAs(zombie)
		}
		if stat, err = proc.ReadStat(pid); err != nil {
			return nil, nil, ended(r.PID)
		}
		leader = false
		r.Notes = append(r.Notes, "its first thread has ended, the others go on")
	}
	r.program = programOf(pid)
	if r.Executable, err = executable(pid); err != nil {
		switch {
		case stat.Kernel:
			err = fmt.Errorf("process %d is %w", pid, ErrKernelThread)
		case errors.Is(err, fs.ErrNotExist):
			err = ended(pid)
		}
		return nil, nil, err
	}
	// Memory first: what is read later may bring pages in.
	usage, err := proc.ReadSmaps(pid)
	if err != nil {
		return nil, nil, err
	}
	r.Memory = newMemory(usage)
	if r.Command, err = proc.Arguments(pid); err != nil {
		return nil, nil, err
	}
	tasks, err := proc.Threads(pid)
	if err != nil {
		return nil, nil, err
	}
	r.Threads = len(tasks)
	if !leader {
		r.Threads--
	}

	t, err := attach(pid, withMemory)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	t.state = stat.State
	var used *object
	r.Finding, used = t.find()
	r.Others = t.others(used, r.Allocator)
	r.Env, r.IgnoredEnv = t.variables(r.Finding, used, r.Others)
	if r.Allocator == Glibc {
		r.Arenas, r.ArenaBytes = t.arenas(usage)
	}
	r.Notes = append(r.Notes, t.notes(r, used, tasks)...)
	program, err := executable(pid)
	switch {
	case err != nil && r.Confidence != Certain:
		return nil, nil, ended(pid)
	case err == nil && program != r.Executable:
		// It began to run another program, and half was seen before that.
		t.loading = true
	}
	return r, t, nil
}

// zombieError says that a process has ended but is not collected yet. It is a
// [proc.ErrNoProcess] with more detail.
type zombieError struct{ pid, parent int }

func (e *zombieError) Error() string {
	return fmt.Sprintf("process %d is a zombie: it has ended, and its parent (process %d) has not asked for its status", e.pid, e.parent)
}

func (e *zombieError) Is(target error) bool {
	return target == proc.ErrNoProcess || target == ErrZombie
}

// ErrZombie says that a process has ended and waits for its parent.
var ErrZombie = errors.New("a zombie")

// endedAs says that a process has ended, by its stat.
func endedAs(s *proc.Stat) error {
	if s.State == 'Z' {
		return &zombieError{s.PID, s.Parent}
	}
	return ended(s.PID)
}

// ended says that a process has ended while it was looked at.
func ended(pid int) error { return fmt.Errorf("process %d has ended: %w", pid, proc.ErrNoProcess) }

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
	if s, err := proc.ReadStat(pid); err == nil && s.Ended() {
		pid = proc.LivingThread(pid)
	}
	tree, err := proc.Tree(pid)
	if err != nil {
		return list
	}
	for _, kid := range tree[1:] {
		if len(list) == maxChildren {
			break
		}
		r, err := inspect(kid, true)
		if err != nil {
			continue
		}
		list = append(list, Child{
			PID: kid, Command: r.Command, Executable: r.Executable, Finding: r.Finding, RSSBytes: r.RSSBytes,
		})
	}
	return list
}
