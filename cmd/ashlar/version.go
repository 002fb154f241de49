package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/version"
)

func newVersion(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version of ashlar, the system and the Go release it was built
for, and with --json also the version of the JSON documents.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d := version.NewDocument()
			return printAnswer(std, asJSON, d, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "ashlar %s %s/%s %s\n", d.Version, d.OS, d.Arch, d.Go)
				return err
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
