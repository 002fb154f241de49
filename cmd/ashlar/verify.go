package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	json    bool
	summary bool
	device  *deviceFlag
	pytorch versionFlag
}

func newVerify(std stdio) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Replay recordings and snapshots, compare all with PyTorch",
		Long: `Verify runs each file through the allocator engine and compares everything that
PyTorch did: every event, address, statistic, out-of-memory message and final
segment. It prints one line for a file that is reproduced identically,
and the first difference with its surroundings for one that is not.

FILE is a recording as JSON, compressed with gzip or not; or a memory snapshot
of PyTorch as pickle or JSON, compressed with gzip, zstd or not; or - for
standard input. Operations and events count from 0.

A snapshot does not contain everything. Verify rebuilds the state at the first
event from the final state, narrows the limit down from served and refused
requests, and infers the pools of freed segments. The notes say what was assumed.

The rules replayed are those of the version of PyTorch that wrote the file, which
its fields show, often as a range; where several versions with different rules are
possible, verify tries them and says which fits. --pytorch says which it was.

Exit status: 0 all identical, 1 a difference, 2 a file cannot be read.`,
		Example: "  ashlar verify testdata/oracle/*.json.gz\n  ashlar verify --json snapshot.pickle",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("verify needs a FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.json && o.summary {
				return errors.New("--summary is text: leave out --json")
			}
			sources, err := verifySources(std.in, args)
			if err != nil {
				return err
			}
			v := &verification{std: std, out: bufio.NewWriter(std.out), options: o}
			return v.run(cmd, sources)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	cmd.Flags().BoolVar(&o.summary, "summary", false, "print PyTorch's memory_summary() of the final statistics too")
	return cmd
}

// verifySources turns the arguments into sources; - is standard input.
func verifySources(stdin io.Reader, args []string) ([]oracle.Source, error) {
	var sources []oracle.Source
	seen := false
	for _, a := range args {
		if a != "-" {
			sources = append(sources, oracle.File(a))
			continue
		}
		if seen {
			return nil, errors.New("standard input (-) can be read only once")
		}
		seen = true
		sources = append(sources, oracle.Source{
			Name: "stdin",
			Open: func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil },
		})
	}
	return sources, nil
}

// verification prints results as they come.
type verification struct {
	std        stdio
	out        *bufio.Writer
	options    verifyOptions
	document   oracle.Document
	unreadable int
}

func (v *verification) run(cmd *cobra.Command, sources []oracle.Source) error {
	defer saveMemory()()
	p := startProgress(v.std, len(sources), "files verified")
	err := oracle.VerifyAll(cmd.Context(), sources, oracle.Options{Device: v.options.device.number, Host: v.options.device.host, Version: v.options.pytorch.version}, func(i int, r *replay.Result, err error) {
		p.pause(func() { v.one(sources[i].Name, r, err) })
	})
	p.stop()
	if err != nil {
		return failure{err}
	}
	if err := v.finish(); err != nil {
		return failure{unwritten{fmt.Errorf("writing the result: %w", err)}}
	}
	switch {
	case v.unreadable > 0:
		return status(exitInput)
	case v.document.Identical < len(sources):
		return status(exitBad)
	}
	return nil
}

// one prints or keeps the result of one file.
func (v *verification) one(name string, r *replay.Result, err error) {
	v.document.Add(name, r, err)
	if err != nil {
		v.unreadable++
		v.std.errorf("%s", oneLine(err))
		return
	}
	for _, w := range r.Warnings {
		v.std.errorf("%s: %s", name, w)
	}
	if v.options.json {
		return
	}
	text.Verified(v.out, name, r, v.std.style()) // an error is kept by the buffer
	if v.options.summary {
		fmt.Fprint(v.out, text.MemorySummary(r.Stats, 0, false))
	}
	v.out.Flush() // an error is kept and reported at the end
}

func (v *verification) finish() error {
	if v.options.json {
		if err := answer.WriteJSON(v.out, &v.document); err != nil {
			return err
		}
	} else if v.document.Total > 1 {
		fmt.Fprintf(v.out, "%s of %s identical\n", count(v.document.Identical), count(v.document.Total))
	}
	return v.out.Flush()
}

func count(n int) string { return units.Count(int64(n)) }
