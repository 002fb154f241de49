package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	message  string
	stats    string
	limit    sizeFlag
	settings string
	believed bool // settings were given
	full     bool
	source   string
	frames   wordFlag
	json     bool
	device   *deviceFlag
	pytorch  versionFlag
}

func newExplain(std stdio) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [FILE...]",
		Short: "Say why a job ran out of memory, and what to try first",
		Long: `Explain says why a job ran out of memory, on one page: the cause, the line of
your code that it shows at, what to try first, the sum behind it, who holds the
memory, other fixes, and what was found besides. --full shows the rest: all
fixes with their numbers, who pins free memory, call stacks, notes.

  leak            every step leaves memory behind; the job dies whatever the
                  allocator does
  spike           this step needs more than there is, ordinary steps fit
  capacity        the job needs more than there is
  fragmentation   there is enough memory, but not in one piece
  stranded        free memory is in private pools, belongs to another stream, or
                  waits for one
  shared device   others hold memory of the device that was needed
  absurd request  one request is larger than anything before explains: a bug
  none            nothing failed: shows the health of the run, and its leaks
  open            the input does not show why

The cause is found by going on: the recording ends at the failure, so explain
finishes the step as earlier steps went, and goes on step by step. Every fix is
replayed so, and says how far it carries the run; a fix that only serves the
failed request does not come first. The trigger, in --full and --json, is why
the request failed just then: a job that leaks may die of fragmentation in the
end. With only a message or a dump of memory_stats(), the answer is arithmetic
on its numbers, and says what they leave open.

FILE is a memory snapshot of PyTorch, also as a page of its memory viewer, a dump
of memory_stats(), an out-of-memory message, or a log with them; compressed with gzip, zstd or not; or - for standard
input. It may be left out if --message or --stats is given. Flags override what
python/ashlar.py wrote into a snapshot (message, statistics, limit, settings). Of
several messages in a log the one that ended a process is explained, of several
processes the first. The errors in which vLLM, transformers and accelerate find
memory too small are explained, too.

Several FILEs, a directory or a pattern are the ranks of a job, or one process
over time: explain says which one failed first, whether all failed for the same
cause and whose memory is odd, shows a table, and explains the first failure.

Exit status: 0 answered, whatever the cause; 2 a file, or a flag, is wrong.`,
		Example: "  ashlar explain oom.pickle --limit 40GiB\n" +
			"  ashlar explain train.log\n" +
			"  ashlar explain snapshots/\n" +
			"  ashlar explain --message \"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has ...\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.message == "" && o.stats == "" {
				return oneFile(cmd, args)
			}
			return onceStdin(args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.message, "message", "", "the out-of-memory message: its `TEXT`, or a file with it")
	flags.StringVar(&o.stats, "stats", "", "a `FILE` with a dump of memory_stats() or the table of memory_summary()")
	flags.Var(&o.limit, "limit", "the limit on reserved memory, if you know it")
	flags.StringVar(&o.settings, "settings", "", "what you believe PYTORCH_CUDA_ALLOC_CONF was: `CONF`, or \"\" for the defaults")
	flags.StringVar(&o.source, "source", "", "the `DIR` with your program: shows the line; no file is opened otherwise")
	flags.BoolVar(&o.full, "full", false, "show everything, not only what fits on a page")
	o.frames.words = []string{"all"}
	flags.Var(&o.frames, "frames", "`all`: show all frames of call stacks, those of libraries included")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.believed = cmd.Flags().Changed("settings")
		o.settings = pastedSettings(o.settings)
		switch {
		case o.limit.value != nil && *o.limit.value == 0:
			return errors.New("--limit is 0: leave it out if there is none")
		case o.device.host:
			return errors.New("--device host: host memory has another allocator, which is not explained; choose a device")
		}
		if _, err := whatif.ParseSetting(o.settings); err != nil {
			return failure{fmt.Errorf("--settings: %w", err)}
		}
		quietPipe()
		files, found, err := input.Expand(args)
		switch {
		case err != nil:
			return failure{err}
		case len(files) > 1:
			return o.runRanks(cmd.Context(), std, args, files, found)
		}
		return o.run(cmd.Context(), std, files)
	}
	return cmd
}

// assignment is how settings stand in a shell script or a Dockerfile.
var assignment = regexp.MustCompile(`^\s*(?:(?:export|ENV|set)\s+)?PYTORCH_(?:CUDA_|HIP_|)ALLOC_CONF\s*=\s*(.*?)\s*;?\s*$`)

// pastedSettings takes the settings out of a line that sets the variable.
func pastedSettings(text string) string {
	m := assignment.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	value := m[1]
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return value
}

func (o *explainOptions) run(ctx context.Context, std stdio, args []string) error {
	defer saveMemory()()
	c, err := o.begin(ctx, std)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		in, err := readInput(ctx, std, args[0])
		if err != nil {
			return err
		}
		o.pytorch.apply(in.Snapshot)
		if err := addFile(ctx, std, c, in); err != nil {
			return failed(ctx, err)
		}
	}
	r, err := explained(ctx, std, c)
	if err != nil {
		return failed(ctx, err)
	}
	return printAnswer(std, o.json, explain.NewDocument(c, r, len(args) > 0), func(w io.Writer) error {
		return text.Explain(w, text.ExplainHead{Name: c.Name, About: strings.Join(c.About, "; ")}, r,
			text.ExplainOptions{Full: o.full, Frames: o.frames.value == "all"}, std.style())
	})
}

// begin makes a case of what was given beside the file.
func (o *explainOptions) begin(ctx context.Context, std stdio) (*explain.Case, error) {
	c := explain.NewCase(o.device.number)
	if o.limit.value != nil {
		c.Limit = *o.limit.value
	}
	c.Full, c.Source = o.full, o.source
	if o.believed {
		c.Believed = &o.settings
	}
	if o.message != "" {
		in, err := readMessage(ctx, std, o.message)
		if err != nil {
			return nil, err
		}
		c.Name, c.Kind = in.Name, in.Kind
		if err := c.AddMessage(in); err != nil {
			return nil, failed(ctx, err)
		}
	}
	if o.stats == "" {
		return c, nil
	}
	in, err := readInput(ctx, std, o.stats)
	if err != nil {
		return nil, err
	}
	if len(in.Dumps) == 0 {
		return nil, failure{fmt.Errorf("--stats: %s has no dump of memory_stats(); give one as JSON or as Python prints it", in.Name)}
	}
	if c.Name == "" {
		c.Name, c.Kind = in.Name, input.MemoryStats
	}
	if err := c.AddDump(in); err != nil {
		return nil, failed(ctx, err)
	}
	return c, nil
}

// addFile adds a file to a case. A snapshot is replayed for it.
func addFile(ctx context.Context, std stdio, c *explain.Case, in *input.Input) error {
	p := startProgress(std, 0, "events replayed")
	defer p.stop()
	c.Progress = p.update
	return c.AddFile(ctx, in)
}

// explained is the explanation of a case. What is replayed takes a while.
func explained(ctx context.Context, std stdio, c *explain.Case) (*explain.Report, error) {
	if c.Run != nil {
		defer showSeconds(std, "s: replaying the run, and what would have helped")()
	}
	return c.Explain(ctx)
}

// showSeconds shows on a terminal how long the work takes. The function it
// returns ends that.
func showSeconds(std stdio, what string) (stop func()) {
	p := startProgress(std, 0, what)
	p.update(1, 0) // nothing is shown before the first second is over
	begin, done := time.Now(), make(chan struct{})
	if std.terminal {
		go func() {
			for tick := time.NewTicker(progressInterval); ; {
				select {
				case <-done:
					tick.Stop()
					return
				case <-tick.C:
					p.update(max(1, int(time.Since(begin).Seconds())), 0)
				}
			}
		}()
	}
	return func() {
		close(done)
		p.stop()
	}
}
