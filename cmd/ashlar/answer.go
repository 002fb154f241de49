package main

import (
	"bufio"
	"errors"
	"io"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// subject is what a JSON answer is about.
type subject struct {
	File         string  `json:"file"`
	Device       int     `json:"device"`
	DeviceReason *string `json:"device_reason"`
}

// newSubject names the device of a file; why it is that one may be empty.
func newSubject(f *snapshot.File, t *trace.Trace, why string) subject {
	s := subject{File: f.Name, Device: t.Device}
	if why != "" {
		s.DeviceReason = &why
	}
	return s
}

// printAnswer writes an answer as JSON or as text.
func printAnswer(std stdio, asJSON bool, doc any, text func(io.Writer) error) error {
	out := bufio.NewWriter(std.out)
	var err error
	if asJSON {
		err = writeJSON(out, doc)
	} else {
		err = text(out)
	}
	return written(errors.Join(err, out.Flush()))
}
