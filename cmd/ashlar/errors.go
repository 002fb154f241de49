package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// The exit statuses.
const (
	exitOK    = 0
	exitBad   = 1 // the answer is bad news
	exitInput = 2 // the input or the flags are wrong
	exitOpen  = 3 // the answer is open: a rough plan that cannot tell
)

// status is how a command ends without a message: it has said all there is.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// failure is an error that no other flags or arguments would cure.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// unwritten is an error of writing the result: nothing can be added to it.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// ended says why a command ended, and returns the exit status. Under --json
// there is one document on standard output in any case, so the error is one too
// if nothing else was printed.
func (s stdio) ended(cmd *cobra.Command, args []string, err error) int {
	var (
		code   status
		failed failure
		lost   unwritten
	)
	if err == nil {
		return exitOK
	}
	if errors.As(err, &code) {
		return int(code)
	}
	said, hint := oneLine(err), ""
	switch {
	case errors.Is(err, context.Canceled):
		said = interruptedBy(cmd.Context())
	case !errors.As(err, &failed):
		hint = "see " + cmd.CommandPath() + " --help"
	}
	line := said
	if hint != "" {
		line += "; " + hint
	}
	s.errorf("%s", line)
	if !errors.As(err, &lost) && wantsJSON(cmd, args) {
		doc := errorDocument(said, hint, cmd.Flags().Args())
		if err := printAnswer(s, true, doc, nil); err != nil {
			s.errorf("%s", oneLine(err))
		}
	}
	return exitInput
}

// wantsJSON reports whether --json was given, also behind a flag that is wrong
// and ended the reading of the flags.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	f := cmd.Flags().Lookup("json")
	if f == nil {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return f.Value.String() == "true" || slices.Contains(args, "--json")
}

// flagName finds the flag that an error begins with.
var flagName = regexp.MustCompile(`^(?:unknown flag: )?(--?[a-z][a-z-]*)`)

// advice finds where an error begins to say what to do. Errors are written as
// "what is wrong; what to do", or "what is wrong: what to do" in the imperative
// or as a question.
var advice = regexp.MustCompile(`; [^;]*$|: (?:add|check|choose|give|leave|let|name|use|write) .*$| \(did you mean .*\?\)$|: \S+\? .*$`)

// errorDocument takes an error apart. A hint is one that is not in its text.
func errorDocument(said, hint string, args []string) *answer.Error {
	d := &answer.Error{Error: said, What: said}
	if at := advice.FindStringIndex(said); at != nil {
		d.What, hint = said[:at[0]], strings.TrimLeft(said[at[0]:], ":; ")
		if inner, ok := strings.CutPrefix(hint, "("); ok {
			hint = strings.TrimSuffix(inner, ")")
		}
	}
	d.Hint = answer.Known(hint)
	if m := flagName.FindStringSubmatch(said); m != nil {
		d.Where = &m[1]
		return d
	}
	for _, a := range args {
		if name := text.Clean(a); name != "" && (strings.HasPrefix(said, name+":") || strings.HasPrefix(said, name+" ")) {
			d.Where = &name
		}
	}
	return d
}

// oneLine says an error in one line: of joined ones the first, and a line break
// or whatever else a terminal would obey, as a name may have it, taken out.
func oneLine(err error) string { return text.Clean(firstJoined(err)) }

// firstJoined is the text of an error with only the first of those that
// errors.Join has put together, which is the one that the others followed from.
func firstJoined(err error) string {
	said := err.Error()
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	inner = slices.DeleteFunc(slices.Clone(inner), func(e error) bool { return e == nil })
	var lines []string
	for _, e := range inner {
		all, first := e.Error(), firstJoined(e)
		lines = append(lines, all)
		if first != all {
			said = strings.Replace(said, all, first, 1)
		}
	}
	if len(lines) > 1 && err.Error() == strings.Join(lines, "\n") {
		return firstJoined(inner[0])
	}
	return said
}
