package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// setHelp has the help of all commands fit so many columns.
func setHelp(root *cobra.Command, columns int) {
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	usage := root.UsageTemplate()
	root.SetUsageTemplate(strings.ReplaceAll(usage, ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", columns)))
	reflow(root, columns)
	for _, c := range root.Commands() {
		if c.Name() == "plan" { // it has too many for one list
			c.SetUsageTemplate(strings.Replace(usage, flags, groupedFlags(c, columns), 1))
		}
	}
}

// helpWriter writes what cobra prints itself: help, the version, completions. It
// keeps the error, which cobra forgets or words in its own way.
type helpWriter struct {
	w   io.Writer
	err error
}

func (h *helpWriter) Write(p []byte) (int, error) {
	if h.err == nil {
		_, h.err = h.w.Write(p)
	}
	return len(p), nil
}

// reflow wraps what the help of a command and its subcommands says.
func reflow(cmd *cobra.Command, columns int) {
	cmd.Long = text.Reflow(cmd.Long, columns)
	for _, c := range cmd.Commands() {
		reflow(c, columns)
	}
}

// groupedFlags lists the flags of plan by what they are about.
func groupedFlags(cmd *cobra.Command, columns int) string {
	cmd.InitDefaultHelpFlag()
	groups := []struct {
		title string
		flags *pflag.FlagSet
	}{{"What it must fit into", nil}, {"The run", nil}, {"Training", nil}, {"Generation", nil}, {"The model", nil}, {"In other tools' words", nil}, {"A server", nil}, {"What to find, and where to put it", nil}}
	group := map[string]int{"gpu": 0, "limit": 0, "settings": 0, "head": 4, "weights": 4, "compare": 0, "trainer": 5, "accelerate": 5, "deepspeed": 5, numGPUs: 5, "serve": 6}
	for _, name := range serveFlags {
		group[name] = 6
	}
	for _, o := range plan.Catalogue() {
		group[o.Name] = map[model.Mode]int{"": 1, model.Train: 2, model.Generate: 3}[o.Mode()]
	}
	for i := range groups {
		groups[i].flags = pflag.NewFlagSet(groups[i].title, pflag.ContinueOnError)
		groups[i].flags.SortFlags = false
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		i, ok := group[f.Name]
		if !ok {
			i = len(groups) - 1
		}
		groups[i].flags.AddFlag(f)
	})
	var lists []string
	for _, g := range groups {
		lists = append(lists, g.title+":\n"+strings.TrimRight(g.flags.FlagUsagesWrapped(columns), "\n"))
	}
	return strings.Join(lists, "\n\n")
}
