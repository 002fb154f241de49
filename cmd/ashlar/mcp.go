package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/mcp"
	"github.com/ashlar-mem/ashlar/internal/version"
)

func newMCP(std stdio) *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "mcp [--root DIR]",
		Short: "Answer coding agents over the Model Context Protocol",
		Long: `Mcp is a server of the Model Context Protocol on standard input and output, for
coding agents: a client starts it and asks. Its tools are the commands explain,
whatif, tune, check, diff, stats, plan, and dry of a ledger. Arguments have the
names of the flags, with _ for -. An answer is the document of --json, under a
schema, and the text that the terminal shows. Of long lists the document has the
first entries and says how many there are; the argument max_items gives more.

Only files under --root are read, and no link out of it is followed. Nothing is
executed, written or sent.

Exit status: 0 the client has closed standard input, and has its answers; 2 a flag
is wrong.`,
		Example:           "  ashlar mcp --root ~/runs\n  claude mcp add ashlar -- ashlar mcp --root ~/runs",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&root, "root", ".", "the `DIR` whose files may be read; relative names are looked for there")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := mcp.OpenRoot(root)
		if err != nil {
			return failure{err}
		}
		if err := os.Chdir(r.Dir()); err != nil { // for the commands a relative name is one in the root
			return failure{err}
		}
		quietPipe()
		return serveAgent(cmd.Context(), std, r)
	}
	return cmd
}

const agentInstructions = `Ashlar explains GPU memory of PyTorch programs: why a job ran out of memory, what other allocator settings would have done, and what a run will need before it is made.
Start with explain for a snapshot, a log or a pasted error message; with plan for a model's config.json.
Files are named relative to %s; no other can be read. Sizes are written as 40GiB or 512MiB. An error may name an argument as the command line does: --max-reserved is max_reserved.`

// serveAgent answers one client.
func serveAgent(ctx context.Context, std stdio, root *mcp.Root) error {
	s := mcp.Server{
		Name: "ashlar", Title: "Ashlar", Version: version.Text,
		Instructions: strings.Replace(agentInstructions, "%s", root.Dir(), 1),
		Tools:        agentTools(root),
	}
	if err := s.Run(ctx, std.in, std.out); err != nil {
		return failure{err}
	}
	return nil
}
