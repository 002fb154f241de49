package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/term"

	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// quietPipe has a reader that goes away, as head does, show up as an error of
// the next write instead of ending the program with a signal.
func quietPipe() { signal.Ignore(syscall.SIGPIPE) }

// written turns the error of writing the result into that of the command. A
// reader that has seen enough is none.
func written(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return failure{unwritten{fmt.Errorf("writing the result: %w", err)}}
}

// style says how text for standard output may be formatted.
func (s stdio) style() text.Style {
	f, ok := s.out.(*os.File)
	return text.Style{
		Bold:  ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())),
		Width: s.width(),
	}
}

// width returns how wide the text for the standard output may be: as COLUMNS
// says, or the terminal; 0 if neither does.
func (s stdio) width() int {
	if s.columns > 0 {
		return s.columns
	}
	f, ok := s.out.(*os.File)
	if !ok {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}
