package problem

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Error is what is wrong, and what to do.
type Error struct {
	format string
	args   []any
}

// Name is a name among the arguments of [New].
type Name string

// New formats a problem, as fmt.Errorf does.
func New(format string, args ...any) error { return &Error{format, args} }

func (e *Error) Error() string { return e.text("").Error() }

// Unwrap returns the error that %w stands for.
func (e *Error) Unwrap() error { return errors.Unwrap(e.text("")) }

var name = regexp.MustCompile(`\{([a-z-]+)\}`)

// text writes names with a prefix.
func (e *Error) text(prefix string) error {
	args := make([]any, len(e.args))
	for i, a := range e.args {
		switch a := a.(type) {
		case Name:
			args[i] = prefix + string(a)
		default:
			args[i] = a
		}
	}
	return fmt.Errorf(name.ReplaceAllString(e.format, prefix+"$1"), args...)
}

// Flags is the text of an error with the names in it written as flags.
func Flags(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.text("--").Error()
	if inner := e.Unwrap(); inner != nil {
		text = strings.Replace(text, inner.Error(), Flags(inner), 1)
	}
	return strings.Replace(err.Error(), e.Error(), text, 1)
}
