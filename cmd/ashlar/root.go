package main

import (
	"context"
	"fmt"
	"io"
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

// errorf prints an error for the user. Names of files are in it as
// they are, so what a terminal would obey is taken out.
func (s stdio) errorf(format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
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
	root.SetOut(std.out)
	root.SetErr(std.err)
	cmd, err := root.ExecuteContextC(ctx)
	return std.ended(cmd, args, err)
}

func newRoot(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "ashlar",
		Short: "Explain GPU memory of PyTorch programs",
		Long: "Ashlar explains GPU memory to people who train and serve models with PyTorch.\n" +
			"It sends nothing anywhere, unless you call watch, to the address you name.",
		Version:       version.Program(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          noCommand,
	}
	root.SetVersionTemplate("ashlar {{.Version}}\n")
	root.AddCommand(newVerify(std), newStats(std), newEvents(std), newGen(std), newConvert(std), newLoad(std))
	root.AddCommand(newDiff(std), newView(std), newWatch(std), newFleet(std))
	root.AddCommand(newPlan(std), newDry(std), newHost(std), newGPU(std))
	root.AddCommand(newExplain(std), newWhatif(std), newPolicies(std), newTune(std), newTenants(std), newCheck(std), newReport(std), newVersion(std), newMCP(std))
	root.SetFlagErrorFunc(flagError)
	addCompletions(root)
	setHelp(root, std.style().TextColumns())
	return root
}
