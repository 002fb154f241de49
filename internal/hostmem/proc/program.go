package proc

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

// The fields of stat that only exec changes: where the code and the stack of the
// program begin.
const (
	fieldStartCode  = 26
	fieldStartStack = 28
)

// Program is a mark of the program that a process runs. It is another one after
// each exec, also if that begins the same file anew: the stack lies elsewhere
// then, unless the kernel was told not to move it.
func Program(pid int) (string, error) {
	exe, err := os.Readlink(path(pid, "exe"))
	if err != nil {
		return "", classify(pid, err)
	}
	data, err := os.ReadFile(path(pid, "stat"))
	if err != nil {
		return "", classify(pid, err)
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const first = fieldState // of those behind the name
	if len(fields) <= fieldStartStack-first {
		return "", classify(pid, errors.New("stat has no start of the stack"))
	}
	mark := []string{exe}
	for n := fieldStartCode; n <= fieldStartStack; n++ {
		mark = append(mark, string(fields[n-first]))
	}
	return strings.Join(mark, " "), nil
}
