package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/version"
)

// The exit statuses.
const (
	exitOK    = 0
	exitBad   = 1 // the answer is bad news
	exitInput = 2 // the input or the flags are wrong
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal
}

// errorf prints an error for the user. Names of files are in it as
// they are, so what a terminal would obey is taken out.
func (s stdio) errorf(format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, l := range lines {
		lines[i] = text.Clean(l)
	}
	fmt.Fprintf(s.err, "ashlar: %s\n", strings.Join(lines, "\n"))
}

// status is how a command ends without a message: it has said all there is.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// failure is an error that no other flags or arguments would cure.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, std stdio, args []string) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	cmd, err := root.ExecuteContextC(ctx)
	var (
		code   status
		failed failure
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		std.errorf("interrupted")
		return exitInput
	case errors.As(err, &failed):
		std.errorf("%s", firstLine(err.Error()))
		return exitInput
	}
	std.errorf("%s; see %s --help", firstLine(err.Error()), cmd.CommandPath())
	return exitInput
}

func newRoot(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "ashlar",
		Short: "Explain GPU memory of PyTorch programs",
		Long: "Ashlar explains GPU memory to people who train and serve models with PyTorch.\n" +
			"It never sends anything anywhere.",
		Version:       version.Text,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return errors.New("no command given")
		},
	}
	root.SetVersionTemplate("ashlar {{.Version}}\n")
	root.AddCommand(newVerify(std), newStats(std), newEvents(std), newGen(std), newConvert(std), newLoad(std))
	root.AddCommand(newDiff(std), newView(std))
	root.AddCommand(newPlan(std), newHost(std), newGPU(std))
	root.AddCommand(newExplain(std), newWhatif(std), newTune(std), newCheck(std), newReport(std))
	return root
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
