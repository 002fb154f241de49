package proc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"time"
)

// Sample is a tree of processes at one moment, summed.
type Sample struct {
	Time      time.Time
	Processes int
	Left      int // processes that have ended since the sample before
	Threads   int
	RSSBytes  uint64

	// Since the processes began, with those of children that have ended and
	// were waited for. What a process did whose parent did not wait is lost.
	MinorFaults, MajorFaults uint64
	CPU                      time.Duration

	Detail *Detail // nil in most samples of a [Sampler]
}

// Detail is what takes the kernel long to count.
type Detail struct {
	Rollup
	// Since the threads that run now began.
	VoluntarySwitches, InvoluntarySwitches uint64
	// Unreadable counts processes of other users, which are not in the sums.
	Unreadable int
}

// Measure takes one sample with all details of the given processes. Those that
// have ended are left out; if all have, it returns [ErrNoProcess].
func Measure(pids []int) (Sample, error) {
	s, err := NewSamplerOf(pids...)
	if err != nil {
		return Sample{}, err
	}
	defer s.Close()
	return s.SampleDetailed()
}

const (
	// The tree is looked through for new processes, and details are read, this
	// often, or less often where each would take more than this share of the
	// time: an eighth of a percent.
	dearEvery = time.Second
	dearShare = 800
	// While it is young the tree is looked through more often, as that is when
	// programs start theirs: when it is a twentieth older than the last time.
	// And when a process has left, as a script starts one after the other, but
	// in no more than a twentieth of the time.
	treeYoung = 3 * time.Second
	treeShare = 20
)

// Sampler follows a process and its descendants. A descendant that has been
// seen stays in the tree when its parent ends.
type Sampler struct {
	root      int
	fixed     bool         // no descendants
	list      func() []int // lists the tree; nil: it is the root with its descendants
	processes []*followed
	buf       [1024]byte

	bornAt        time.Time // when the first sample was taken
	tree, details pace
}

// pace spaces out what is expensive.
type pace struct {
	at   time.Time     // when it was done last
	cost time.Duration // how long that took
}

func (p *pace) due() bool { return time.Since(p.at) >= max(dearEvery, dearShare*p.cost) }

// do does it and sees how long it takes.
func (p *pace) do(f func()) {
	p.at = time.Now()
	f()
	p.cost = time.Since(p.at)
}

// followed is one process, with its stat held open: the descriptor goes on
// meaning this process even if its number is given to another.
type followed struct {
	pid  int
	stat *os.File
	last Stat
}

// NewSampler follows a process and its descendants.
func NewSampler(pid int) (*Sampler, error) {
	s := &Sampler{root: pid}
	if !s.follow(pid) {
		return nil, classify(pid, os.ErrNotExist)
	}
	return s, nil
}

// NewSamplerFunc follows what a function lists: the tree of a process, by rules of
// the caller. It is asked as often as a tree is looked through; there may be
// none at first.
func NewSamplerFunc(pid int, list func() []int) *Sampler {
	return &Sampler{root: pid, list: list}
}

// NewSamplerOf follows these processes alone, without descendants. Those that
// have ended are left out.
func NewSamplerOf(pids ...int) (*Sampler, error) {
	s := &Sampler{fixed: true}
	for _, pid := range pids {
		s.root = pids[0]
		s.follow(pid)
	}
	if len(s.processes) == 0 {
		return nil, classify(s.root, os.ErrNotExist)
	}
	return s, nil
}

// Close releases the files.
func (s *Sampler) Close() {
	for _, p := range s.processes {
		p.stat.Close()
	}
	s.processes = nil
}

// PIDs lists the processes that were running at the last sample.
func (s *Sampler) PIDs() []int {
	pids := make([]int, len(s.processes))
	for i, p := range s.processes {
		pids[i] = p.pid
	}
	return pids
}

// Sample takes a sample, with details when they are due. It returns
// [ErrNoProcess] when all processes have ended.
func (s *Sampler) Sample() (Sample, error) {
	return s.sample(s.details.due())
}

// SampleDetailed takes a sample with details, of the tree as it is now.
func (s *Sampler) SampleDetailed() (Sample, error) {
	s.tree.at = time.Time{}
	return s.sample(true)
}

func (s *Sampler) sample(detailed bool) (Sample, error) {
	now := time.Now()
	if s.bornAt.IsZero() {
		s.bornAt = now
	}
	age := now.Sub(s.bornAt)
	look := s.tree.due() || age < treeYoung && now.Sub(s.tree.at) >= age/treeShare
	if look && !s.fixed {
		s.tree.do(s.grow)
	}
	sum := Sample{Time: now, Left: s.read()}
	// When nobody is left that was known, there are only others.
	if !look && !s.fixed && (len(s.processes) == 0 || sum.Left > 0 && time.Since(s.tree.at) >= treeShare*s.tree.cost) {
		s.tree.do(s.grow)
	}
	for _, p := range s.processes {
		sum.Processes++
		sum.Threads += p.last.Threads
		sum.RSSBytes += p.last.RSSBytes
		sum.MinorFaults += p.last.MinorFaults + p.last.ChildrenMinorFaults
		sum.MajorFaults += p.last.MajorFaults + p.last.ChildrenMajorFaults
		sum.CPU += p.last.CPU + p.last.ChildrenCPU
	}
	if sum.Processes == 0 {
		return sum, classify(s.root, os.ErrNotExist)
	}
	if detailed {
		s.details.do(func() { sum.Detail = s.detail() })
	}
	return sum, nil
}

// read reads all processes, drops those that have ended and returns their number.
func (s *Sampler) read() (left int) {
	kept := s.processes[:0]
	for _, p := range s.processes {
		if err := p.read(s.buf[:]); err != nil || p.last.Empty() {
			p.stat.Close()
			continue
		}
		kept = append(kept, p)
	}
	left = len(s.processes) - len(kept)
	clear(s.processes[len(kept):])
	s.processes = kept
	return left
}

// grow takes descendants into the tree that are new.
func (s *Sampler) grow() {
	if s.list != nil {
		for _, pid := range s.list() {
			s.follow(pid)
		}
		return
	}
	for i := 0; i < len(s.processes); i++ {
		kids, ok := children(s.processes[i].pid)
		if !ok {
			kids = scanTree(nil, s.processes[i].pid)[1:]
		}
		for _, pid := range kids {
			s.follow(pid)
		}
	}
}

func (s *Sampler) follow(pid int) bool {
	for _, p := range s.processes {
		if p.pid == pid {
			return true
		}
	}
	f, err := os.Open(path(pid, "stat"))
	if err != nil {
		return false
	}
	p := &followed{pid: pid, stat: f}
	if err := p.read(s.buf[:]); err != nil || p.last.Empty() {
		f.Close()
		return false
	}
	s.processes = append(s.processes, p)
	return true
}

func (p *followed) read(buf []byte) error {
	n, err := p.stat.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return p.last.parse(buf[:n])
}

func (s *Sampler) detail() *Detail {
	var d Detail
	for _, p := range s.processes {
		r, err := ReadRollup(p.pid)
		switch {
		case errors.Is(err, ErrPermission):
			d.Unreadable++
			continue
		case err != nil:
			continue // it ended meanwhile
		}
		d.add(r)
		tasks, _ := Threads(p.pid) // none: it ended
		for _, tid := range tasks {
			v, i := switches(p.pid, tid)
			d.VoluntarySwitches += v
			d.InvoluntarySwitches += i
		}
	}
	return &d
}

// switches reads the context switches of one thread: those in /proc/PID/status
// are of the first thread alone.
func switches(pid, tid int) (voluntary, involuntary uint64) {
	data, err := os.ReadFile(path(pid, "task/"+strconv.Itoa(tid)+"/status"))
	if err != nil {
		return 0, 0
	}
	return statusField(data, "voluntary_ctxt_switches"), statusField(data, "nonvoluntary_ctxt_switches")
}

// statusField reads a number of a status file.
func statusField(data []byte, name string) uint64 {
	_, rest, ok := bytes.Cut(data, []byte("\n"+name+":"))
	if !ok {
		return 0
	}
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	return number(words[0])
}
