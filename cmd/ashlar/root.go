package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/version"
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal
	columns  int  // of what out shows; 0 to find out

	agent *agent // who asked, if it was over the Model Context Protocol
}

// errorf prints an error for the user. What is said may have names of files as
// they are, so line breaks and what a terminal would obey are taken out of it;
// those of the format stay.
func (s stdio) errorf(format string, args ...any) {
	clean := slices.Clone(args)
	for i, a := range args {
		switch a := a.(type) {
		case string:
			clean[i] = text.Clean(a)
		case error:
			clean[i] = oneLine(a)
		}
	}
	lines := strings.Split(fmt.Sprintf(format, clean...), "\n")
	for i, l := range lines {
		lines[i] = text.Clean(l)
	}
	fmt.Fprintf(s.err, "ashlar: %s\n", strings.Join(lines, "\n"))
}

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, std stdio, args []string) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	help := &helpWriter{w: std.out}
	root.SetOut(help)
	root.SetErr(std.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = written(help.err)
	}
	return std.ended(cmd, args, err)
}

func newRoot(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "ashlar",
		Short: "Explain GPU memory of PyTorch programs",
		Long: "Ashlar explains GPU memory to people who train and serve models with PyTorch.\n" +
			"It sends nothing anywhere, unless you call watch, to the address you name.",
		Version:           version.Program(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		RunE:              noCommand,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return namesGiven(cmd, args) },
	}
	root.SetVersionTemplate("ashlar {{.Version}}\n")
	root.AddCommand(newVerify(std), newStats(std), newEvents(std), newGen(std), newConvert(std), newLoad(std))
	root.AddCommand(newDiff(std), newView(std), newWatch(std), newFleet(std))
	root.AddCommand(newPlan(std), newDry(std), newHost(std), newGPU(std))
	root.AddCommand(newExplain(std), newWhatif(std), newPolicies(std), newTune(std), newTenants(std), newCheck(std), newReport(std), newVersion(std), newMCP(std))
	root.SetFlagErrorFunc(flagError)
	if std.agent == nil { // cobra keeps them, and with them the commands, for ever
		addCompletions(root)
	}
	setHelp(root, std.style().TextColumns())
	return root
}

// namesGiven refuses an empty argument, such as a variable that is not set leaves. What follows -- and host is
// another program's.
func namesGiven(cmd *cobra.Command, args []string) error {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		args = args[:n]
	}
	if of := cmd.Parent(); of != nil && of.Name() != "host" && !strings.HasPrefix(cmd.Name(), "__") && slices.Contains(args, "") {
		return failure{errors.New("an argument is empty; check the variable that it came from")}
	}
	return nil
}
