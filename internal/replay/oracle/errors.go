package oracle

import (
	"fmt"
	"strings"
)

// InputError says why a file is not a recording that can be replayed: what is
// wrong, where in the file, and what to do about it.
type InputError struct {
	File    string
	Where   string // "" for the whole file
	Problem string
	Advice  string
	Err     error // cause, if there is one
}

func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	b.WriteString(": ")
	if e.Where != "" {
		b.WriteString(e.Where)
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Advice != "" {
		b.WriteString("; ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

func (e *InputError) Unwrap() error { return e.Err }

const (
	adviceOther = "give a recording of the allocator (.json, .json.gz) or a memory snapshot (.pickle, .json, .gz, .zst)"
	adviceAgain = "copy or record the file again"
)

// shapef makes the error for JSON whose shape is not that of a recording.
func shapef(where, format string, args ...any) *InputError {
	return &InputError{Where: where, Problem: fmt.Sprintf(format, args...), Advice: adviceAgain}
}
