package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newStats(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats FILE",
		Short: "Show the facts of a snapshot, a memory_stats() dump or an OOM message",
		Long: `Stats shows what a file says about GPU memory: how much was reserved,
allocated and requested, now and at its peak, and when that was; segments by
pool, stream and kind; fragmentation, explained; settings; failed requests; who
holds the memory at the end; and what the file does not tell.

FILE is a memory snapshot of PyTorch as pickle or JSON; a dump of memory_stats()
as JSON or as Python prints it, or the table of memory_summary(); or a log or
message of an out-of-memory error; each also compressed with gzip or zstd; or -
for standard input. What it is, is found out.

Peaks by block size come from a replay of the events, which is compared with
the file event by event.

Exit status: 0 answered, 2 the file cannot be read.`,
		Example: "  ashlar stats snapshot.pickle\n  ashlar stats --json snapshot.pickle.gz\n  python train.py 2>&1 | tee log; ashlar stats log",
		Args:    oneFile,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	device := addDeviceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		in, err := readInput(cmd.Context(), std, args[0])
		if err != nil {
			return err
		}
		s, err := collectStats(cmd.Context(), std, in, device)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(std.out)
		if asJSON {
			err = writeJSON(out, s)
		} else {
			err = s.text(out, std.style())
		}
		return written(errors.Join(err, out.Flush()))
	}
	return cmd
}

// oneFile checks the arguments of a command that reads one file.
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return errors.New(cmd.Name() + " needs a FILE")
	case 1:
		return nil
	}
	return errors.New(cmd.Name() + " takes one FILE")
}

// fileStats is the JSON form of the answer.
type fileStats struct {
	File     string           `json:"file"`
	Kind     string           `json:"kind"`
	Snapshot *stats.Snapshot  `json:"snapshot"`
	Dumps    []*stats.Dump    `json:"memory_stats"`
	Messages []*stats.Message `json:"oom_messages"`
}

func collectStats(ctx context.Context, std stdio, in *input, device *deviceFlag) (*fileStats, error) {
	s := &fileStats{File: in.name, Kind: in.kind, Dumps: []*stats.Dump{}, Messages: []*stats.Message{}}
	if in.snapshot != nil {
		p := startProgress(std, 0, "events replayed")
		f, err := stats.NewSnapshot(ctx, in.snapshot, stats.Options{
			Device: device.number, Host: device.host, FileBytes: in.bytes, Writer: in.writer,
			Progress: p.at, Observed: in.seen,
		})
		p.stop()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, failure{err}
		}
		s.Snapshot = f
	}
	for _, d := range in.dumps {
		if device.number < 0 || d.Device < 0 || d.Device == device.number {
			s.Dumps = append(s.Dumps, stats.NewDump(d))
		}
	}
	for _, m := range in.messages {
		if device.number < 0 || m.Device < 0 || m.Device == device.number {
			s.Messages = append(s.Messages, stats.NewMessage(m))
		}
	}
	if s.Snapshot == nil && len(s.Dumps)+len(s.Messages) == 0 {
		return nil, failure{errors.New(in.name + " has nothing about device " + device.String() + "; leave out --device")}
	}
	return s, nil
}

func (s *fileStats) text(w *bufio.Writer, style text.Style) error {
	if s.Snapshot != nil {
		return text.Snapshot(w, s.File, s.Snapshot, style)
	}
	fmt.Fprintln(w, text.Clean(s.File))
	if err := text.Dumps(w, s.Dumps, style); err != nil {
		return err
	}
	if len(s.Dumps) > 0 && len(s.Messages) > 0 {
		fmt.Fprintln(w)
	}
	return text.Messages(w, s.Messages, style)
}
