package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newHostDetect(std stdio) *cobra.Command {
	var (
		asJSON bool
		watch  time.Duration
		settle time.Duration
	)
	cmd := &cobra.Command{
		Use:   "detect PID | -- COMMAND...",
		Short: "Tell which malloc a process really uses",
		Long: `Detect shows which malloc a process really uses: the object that its malloc calls
go to, read from its memory and identified by that object's symbols. What is only
loaded, or only named in LD_PRELOAD, does not count.

It also shows how much memory the process has and where; which environment
variables are about allocators, and which of these have no effect; other
allocators in the process; and its descendants.

A COMMAND is started, inspected when it has run the same program for a second
(--settle), and ended with all that it started. If it ends sooner it is inspected
just before. Its output is dropped. If the process starts another program while it
is watched (--for), the answer is about that one.

"certain" was read from the process or its symbols. "likely" was inferred: from
the link order where the memory may not be read (kernel.yama.ptrace_scope), or
from texts in a stripped program.

Exit status: 0 answered, even if the answer is "unknown"; 2 no such process, no
permission, or the command cannot be started.`,
		Example: "  ashlar host detect 4711\n  ashlar host detect --for 30s 4711\n" +
			"  LD_PRELOAD=libjemalloc.so.2 ashlar host detect -- python3 app.py",
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().DurationVar(&watch, "for", 0, "watch its memory for this long, such as 30s")
	cmd.Flags().DurationVar(&settle, "settle", time.Second, "how long a COMMAND must have run the same program")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		if watch < 0 || settle < 0 {
			return errors.New("a time cannot be negative")
		}
		command := cmd.ArgsLenAtDash() == 0
		pid, err := detectArguments(command, args)
		if err != nil {
			return err
		}
		if err := hostSystem(); err != nil {
			return err
		}
		if !command && cmd.Flags().Changed("settle") {
			return errors.New("--settle is for a COMMAND that is started")
		}
		ctx := cmd.Context()
		takesTime(ctx) // a command that was started must not outlive us
		var r *detect.Result
		if command {
			r, err = detect.Command(ctx, args, detect.Options{Settle: settle, For: watch})
		} else {
			r, err = detectProcess(ctx, pid, watch)
		}
		if err != nil {
			return detectFailure(ctx, pid, err)
		}
		return printAnswer(std, asJSON, r, func(w io.Writer) error { return text.HostDetect(w, r, std.style()) })
	}
	return cmd
}

// detectArguments checks the arguments; without a command there is a process.
func detectArguments(command bool, args []string) (pid int, err error) {
	switch {
	case len(args) == 0:
		return 0, errors.New("detect needs a PID, or -- and a COMMAND")
	case command:
		return 0, nil
	case len(args) > 1:
		return 0, fmt.Errorf("detect takes one PID; a command stands behind --: ashlar host detect -- %s", strings.Join(args, " "))
	}
	pid, err = strconv.Atoi(args[0])
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("%q is no process number; a command stands behind --: ashlar host detect -- %s", args[0], args[0])
	}
	return pid, nil
}

func detectProcess(ctx context.Context, pid int, watch time.Duration) (*detect.Result, error) {
	if watch == 0 {
		return detect.Process(pid)
	}
	return detect.Watched(ctx, pid, watch)
}

// detectFailure words an error and what to do about it.
func detectFailure(ctx context.Context, pid int, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, detect.ErrZombie): // it says all
	case errors.Is(err, proc.ErrNoProcess) && pid > 0:
		err = fmt.Errorf("there is no process %d", pid)
	case errors.Is(err, proc.ErrPermission) && pid > 0 && os.Geteuid() != 0:
		err = fmt.Errorf("%w (sudo ashlar host detect %d)", err, pid)
	}
	return failure{err}
}
