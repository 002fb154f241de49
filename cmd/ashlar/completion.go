package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// addCompletions has the shell complete the values of all flags: with the words
// that one takes, with files where it names one, and with nothing otherwise.
func addCompletions(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.CompletionFunc(cobra.NoFileCompletions)
		switch kind, _ := pflag.UnquoteUsage(f); {
		case f.Name == "help" || namesFile(kind):
			return // files are what a shell offers by itself
		case flagWords[f.Name] != nil:
			complete = completeWords(flagWords[f.Name])
		default:
			if w, ok := f.Value.(interface{ complete() []string }); ok {
				complete = completeWords(w.complete)
			}
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // registered twice
		}
	})
	for _, c := range cmd.Commands() {
		addCompletions(c)
	}
}

// namesFile reports whether the value of a flag, as its help calls it, is a
// file.
func namesFile(kind string) bool { return kind == "FILE" || kind == "SNAPSHOT" || kind == "OLD" }

// flagWords are words for flags that take other texts too.
var flagWords = map[string]func() []string{
	"action":   actionWords,
	"at":       func() []string { return []string{"peak", "start", "end", "step:"} },
	"compare":  cardWords,
	"gpu":      cardWords,
	"head":     model.Heads,
	"kv-dtype": func() []string { return []string{"auto", "fp8"} },
	"max":      func() []string { return []string{"batch", "seq"} },
	"serve":    func() []string { return []string{"vllm", "hf"} },
	"set":      settingWords,
	"settings": settingWords,
	"sweep":    sweepWords,
	"variants": variant.Names,
}

// completeWords completes the last of a list with commas. A word that ends in :
// or = is to be continued.
func completeWords(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var out []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, w := range words() {
			if !strings.HasPrefix(before+w, typed) {
				continue
			}
			out = append(out, before+w)
			if strings.HasSuffix(w, ":") || strings.HasSuffix(w, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
		return out, directive
	}
}

// actionWords are the names of events, and those of their kinds.
func actionWords() []string {
	words := []string{"free", "segment"}
	for a := alloc.Action(0); ; a++ {
		if _, ok := alloc.ParseAction(a.String()); !ok {
			return words
		}
		words = append(words, a.String())
	}
}

func cardWords() []string {
	var words []string
	for _, c := range cards.List() {
		words = append(words, c.Name)
	}
	return words
}

// settingWords are the settings that are tried most.
func settingWords() []string {
	return []string{
		"expandable_segments:True", "garbage_collection_threshold:", "max_split_size_mb:", "roundup_power2_divisions:",
		"large_segment_size_mb:", "max_non_split_rounding_mb:",
	}
}

func sweepWords() []string {
	var words []string
	for _, o := range plan.Catalogue() {
		if o.Value != "" {
			words = append(words, o.Name+"=")
		}
	}
	return words
}
