package proc

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
)

// Tree lists a process and all its descendants, parents before children. One
// whose parent has ended belongs to init and is no descendant any more; a
// [Sampler] keeps those it has seen.
func Tree(pid int) ([]int, error) {
	s, err := ReadStat(pid)
	if err != nil {
		return nil, err
	}
	if s.Ended() {
		return nil, classify(pid, os.ErrNotExist)
	}
	return appendTree(nil, pid), nil
}

func appendTree(tree []int, root int) []int {
	tree = append(tree, root)
	for i := len(tree) - 1; i < len(tree); i++ {
		kids, ok := children(tree[i])
		if !ok {
			return scanTree(tree[:slices.Index(tree, root)], root)
		}
		for _, kid := range kids {
			if !slices.Contains(tree, kid) {
				tree = append(tree, kid)
			}
		}
	}
	return tree
}

// Children lists the children of a process, also those that have ended and were
// not collected.
func Children(pid int) []int {
	if kids, ok := children(pid); ok {
		return kids
	}
	var kids []int
	for _, s := range All() {
		if s.Parent == pid {
			kids = append(kids, s.PID)
		}
	}
	return kids
}

// children lists the children of a process. It is false where the kernel was
// built without that file.
func children(pid int) ([]int, bool) {
	tasks, err := Threads(pid)
	if err != nil {
		return nil, true // it ended
	}
	var kids []int
	for _, tid := range tasks {
		data, err := os.ReadFile(path(pid, "task/"+strconv.Itoa(tid)+"/children"))
		if err != nil {
			if _, still := os.Stat(path(pid, "task/"+strconv.Itoa(tid)+"/stat")); still == nil && errors.Is(err, os.ErrNotExist) {
				return nil, false
			}
			continue
		}
		for _, word := range bytes.Fields(data) {
			if kid, err := strconv.Atoi(string(word)); err == nil {
				kids = append(kids, kid)
			}
		}
	}
	return kids, true
}

// scanTree finds descendants by the parent of every process of the machine.
func scanTree(tree []int, root int) []int {
	byParent := map[int][]int{}
	for _, s := range All() {
		byParent[s.Parent] = append(byParent[s.Parent], s.PID)
	}
	tree = append(tree, root)
	for i := len(tree) - 1; i < len(tree); i++ {
		for _, kid := range byParent[tree[i]] {
			if !slices.Contains(tree, kid) {
				tree = append(tree, kid)
			}
		}
	}
	return tree
}

// All lists every process of the machine that this user may see.
func All() []*Stat {
	var all []*Stat
	for _, pid := range numbers("/proc") {
		if s, err := ReadStat(pid); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// Threads lists the threads of a process.
func Threads(pid int) ([]int, error) {
	tasks := numbers(path(pid, "task"))
	if len(tasks) == 0 {
		return nil, classify(pid, os.ErrNotExist)
	}
	return tasks, nil
}

// numbers lists the entries of a directory that are numbers.
func numbers(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what could be read is used
	var all []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// Group lists the running processes of a process group, also those whose
// parents have ended.
func Group(group int) []int {
	var pids []int
	for _, s := range All() {
		if s.Group == group && !s.Ended() {
			pids = append(pids, s.PID)
		}
	}
	return pids
}
