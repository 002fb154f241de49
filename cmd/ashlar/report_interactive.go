package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/html"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/view/offline"
)

// runInteractive is report --interactive. The page holds the file as it is, so
// flags that say something about it have no place.
func (o *reportOptions) runInteractive(cmd *cobra.Command, std stdio, args []string) error {
	for _, name := range []string{"limit", "set", "settings", "message", "stats", "device"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: a page with --interactive holds FILE alone and asks there; leave the flag out", name)
		}
	}
	file := ""
	switch {
	case len(args) == 1:
		file = args[0]
		if _, err := o.check(file); err != nil {
			return err
		}
	case o.out == "":
		return errors.New("a page without a FILE has no name: give -o FILE, or -o - for standard output")
	case o.hidden.on:
		return errors.New("--anonymous takes the names out of a FILE: give one")
	case o.json:
		return errors.New("--json tells what a page is about: give a FILE")
	}
	quietPipe()
	return o.writeInteractive(cmd.Context(), std, file)
}

func (o *reportOptions) writeInteractive(ctx context.Context, std stdio, file string) error {
	defer saveMemory()()
	if file != "" && file != "-" && o.out != "-" && sameFile(file, o.out) {
		return failure{fmt.Errorf("%s is the same file as FILE: name another", o.out)}
	}
	var files []view.File
	about := &html.Document{}
	if file != "" {
		in, data, err := o.readWhole(ctx, std, file)
		if err != nil {
			return err
		}
		files = append(files, view.File{Name: filepath.Base(in.Name), Data: data})
		about.File, about.Kind, about.Contradictions = in.Name, in.Kind, answer.Contradictions(in.Snapshot)
	}
	if o.out == "-" {
		return written(offline.Write(std.out, files...))
	}
	out, err := createOutput(ctx, o.out)
	if err != nil {
		return err
	}
	defer out.abort()
	if err := offline.Write(out, files...); err != nil {
		return out.failed(err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	about.Report, about.ReportBytes = out.file.Target(), out.file.Size()
	if !o.json {
		return said(std.out, []*output{out})
	}
	return printAnswer(std, true, about, nil)
}

// maxHeld is more than a browser opens.
const maxHeld = 4096 // MiB

// readWhole reads a file and keeps its bytes. It has to be a snapshot that can be
// read: whoever opens the page cannot do anything about it.
func (o *reportOptions) readWhole(ctx context.Context, std stdio, file string) (*input.Input, []byte, error) {
	if o.hidden.on {
		return o.hidden.read(ctx, std, file)
	}
	var kept bytes.Buffer // what was read of standard input, which may never end
	if file == "-" {
		std.in = io.TeeReader(std.in, &kept)
	} else if err := guard.Check(file); err != nil { // it is read twice
		return nil, nil, failure{fmt.Errorf("%w: give a pipe as standard input, with -", err)}
	}
	in, err := readInput(ctx, std, file)
	if err != nil {
		return nil, nil, err
	}
	if in.Kind != input.Snapshot {
		return nil, nil, failure{fmt.Errorf("%s is %s: --interactive needs a memory snapshot; without it the report takes this file", in.Name, in.Kind.Words())}
	}
	if file == "-" {
		return in, kept.Bytes(), nil
	}
	data, err := guard.ReadRegular(file, maxHeld, "snapshot for a page")
	if err != nil {
		return nil, nil, failure{err}
	}
	return in, data, nil
}
