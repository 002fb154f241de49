package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Stat is /proc/PID/stat: what everybody may know about a process.
type Stat struct {
	PID     int
	Name    string // of the program, cut to 15 bytes
	State   byte   // R, S, D, T, Z and others
	Parent  int
	Group   int
	Session int
	Kernel  bool // it is a thread of the kernel
	Threads int
	Start   uint64 // clock ticks after boot; with PID it names one process for ever

	MinorFaults, MajorFaults                 uint64 // its own
	ChildrenMinorFaults, ChildrenMajorFaults uint64 // of children that it waited for
	CPU, ChildrenCPU                         time.Duration
	VirtualBytes, RSSBytes                   uint64
}

// Ended reports whether the process has ended and only waits to be collected.
func (s *Stat) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// Empty reports whether the process has no memory any more: it has ended, or is
// about to. The kernel frees its memory first, which takes a while for a large one.
func (s *Stat) Empty() bool { return s.Ended() || s.VirtualBytes == 0 }

// tick is the unit of times in /proc: USER_HZ is 100 on every platform Go
// knows, whatever the kernel's own rate.
const tick = 10 * time.Millisecond

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int) (*Stat, error) {
	data, err := os.ReadFile(path(pid, "stat"))
	if err != nil {
		return nil, classify(pid, err)
	}
	var s Stat
	if err := s.parse(data); err != nil {
		return nil, classify(pid, err)
	}
	return &s, nil
}

func path(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// The fields of stat after the name, counted as in proc(5).
const (
	fieldState       = 3
	fieldParent      = 4
	fieldGroup       = 5
	fieldSession     = 6
	fieldFlags       = 9
	fieldMinor       = 10
	fieldChildMinor  = 11
	fieldMajor       = 12
	fieldChildMajor  = 13
	fieldUser        = 14
	fieldSystem      = 15
	fieldChildUser   = 16
	fieldChildSystem = 17
	fieldThreads     = 20
	fieldStart       = 22
	fieldVirtual     = 23
	fieldRSS         = 24
)

// kernelThread is a flag: PF_KTHREAD.
const kernelThread = 0x200000

// parse reads one line of stat. It keeps s.Name when that has not changed, so
// that reading the same process again allocates nothing.
func (s *Stat) parse(line []byte) error {
	// The name may hold blanks and brackets: the last bracket ends it.
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return errors.New("stat has no name")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	if err != nil {
		return errors.New("stat has no number")
	}
	s.PID = pid
	if name := line[open+1 : end]; s.Name != string(name) {
		s.Name = string(name)
	}
	var values [fieldRSS + 1]uint64
	n := fieldState
	rest := line[end+1:]
	for n <= fieldRSS {
		rest = bytes.TrimLeft(rest, " \n")
		if len(rest) == 0 {
			return fmt.Errorf("stat ends before field %d", n)
		}
		word := rest
		if i := bytes.IndexAny(rest, " \n"); i >= 0 {
			word = rest[:i]
		}
		rest = rest[len(word):]
		if n == fieldState {
			s.State = word[0]
		} else {
			values[n] = number(word)
		}
		n++
	}
	s.Parent, s.Group, s.Session = int(values[fieldParent]), int(values[fieldGroup]), int(values[fieldSession])
	s.Kernel = values[fieldFlags]&kernelThread != 0
	s.MinorFaults, s.MajorFaults = values[fieldMinor], values[fieldMajor]
	s.ChildrenMinorFaults, s.ChildrenMajorFaults = values[fieldChildMinor], values[fieldChildMajor]
	s.CPU = time.Duration(values[fieldUser]+values[fieldSystem]) * tick
	s.ChildrenCPU = time.Duration(values[fieldChildUser]+values[fieldChildSystem]) * tick
	s.Threads, s.Start = int(values[fieldThreads]), values[fieldStart]
	s.VirtualBytes = values[fieldVirtual]
	s.RSSBytes = values[fieldRSS] * uint64(os.Getpagesize())
	return nil
}

// number reads digits; anything else, also a negative number, is 0.
func number(word []byte) uint64 {
	var n uint64
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}
