package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/spf13/cobra"
)

// Every command fits terminals of 80 to 200 columns, and uses wide ones: text that
// is shortened on a narrow one is there on a wide one. Lines to paste may be
// longer: what is exported, flags and code.
func TestWidth(t *testing.T) {
	short.Skip(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_head": 4, "n_embd": 256, "vocab_size": 1000, "n_positions": 512}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	message := filepath.Join(dir, "train.log")
	text := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.12 GiB is free. " +
		"Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, " +
		"and 7.00 GiB is reserved by PyTorch but unallocated.\n"
	if err := os.WriteFile(message, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		data    = "../../testdata/"
		cpp     = data + "variety/cppstacks.pickle.gz"
		leak    = data + "snapshots/leak_graph-tight-default.pickle.gz"
		graph   = data + "snapshots/streams_graphs-tight-default.pickle.gz"
		healthy = data + "snapshots/gpt2_fixed-default.pickle.gz"
	)
	for _, tt := range []struct {
		args  string
		wider bool // it says more on 200 columns than on 80
	}{
		{"explain " + leak, false},
		{"explain " + graph, false},
		{"explain " + healthy, false},
		{"explain " + message, false},
		{"explain --full " + leak, true},
		{"explain --full " + graph, true},
		{"explain --frames all " + graph, true},
		{"explain " + leak + " " + healthy + " " + graph, false},
		{"stats " + cpp, true},
		{"stats " + graph, true},
		{"stats " + message, false},
		{"events --limit 300 " + cpp, true},
		{"events --limit 300 " + graph, true},
		{"events --action oom " + leak, true},
		{"whatif --set expandable_segments:True --set max_split_size_mb:64 " + leak, true},
		{"whatif --set expandable_segments:True " + graph, true},
		{"policies --policy best-fit,binning,managed --set max_split_size_mb:64 " + leak, true},
		{"check " + leak, false},
		{"check --max-reserved 1GiB --survives 1GiB --min-headroom 1GiB " + leak, false},
		{"diff " + healthy + " " + leak, true},
		{"diff " + healthy + " " + leak + " " + graph, false},
		{"diff --at step:3 --at end " + leak, true},
		{"verify " + leak + " " + lessons, false},
		{"plan " + config + " --batch 2 --seq 128 --gpu t4", true},
		{"dry " + filepath.Join("..", "..", "testdata", "dry", "mlp.dry") + " --full", true},
		{"plan " + config + " --batch 2 --seq 128 --limit 40MiB", false},
		{"plan " + config + " --batch 2 --seq 128 --gpu 24GB --full --fp16 --torch-compile", true},
		{"plan " + config + " --batch 2 --seq 128 --compare a100,24GB,rtx-pro-6000,mi300x", false},
		{"plan " + config + " --seq 128 --limit 400MiB --max batch", false},
		{"plan " + filepath.Join("..", "..", "testdata", "plan", "llama-1b.json") + " --serve vllm --max-model-len 8192 --gpu t4 --vllm 0.8.5", false},
		{"plan " + config + " --sweep batch=1,2,3000 --sweep seq=64,9000 --gpu t4", false},
		{"gen " + graph + " " + filepath.Join(dir, "out.pickle"), false},
		{"tune --budget 2s " + graph, false},
		{"version", false},
	} {
		t.Run(strings.ReplaceAll(tt.args, "/", "_"), func(t *testing.T) {
			var said [2]int
			for i, columns := range []int{80, 120, 200} {
				var out, errs bytes.Buffer
				execute(t.Context(), stdio{in: strings.NewReader(""), out: &out, err: &errs, columns: columns}, strings.Fields(tt.args))
				if out.Len() == 0 {
					t.Fatalf("it says nothing: %s", &errs)
				}
				for line := range strings.Lines(out.String()) {
					line = strings.TrimSuffix(line, "\n")
					if n := utf8.RuneCountInString(line); n > columns && !toPaste(line) {
						t.Errorf("%d wide on %d columns: %q", n, columns, line)
					}
				}
				if i != 1 {
					said[i/2] = len(strings.Join(strings.Fields(out.String()), ""))
				}
			}
			if tt.wider && said[1] <= said[0] {
				t.Errorf("on 80 columns it says %d letters, on 200 %d", said[0], said[1])
			}
		})
	}
}

// So does the help of every command.
func TestHelpWidth(t *testing.T) {
	var commands func(c *cobra.Command) []*cobra.Command
	commands = func(c *cobra.Command) []*cobra.Command {
		all := []*cobra.Command{c}
		for _, sub := range c.Commands() {
			all = append(all, commands(sub)...)
		}
		return all
	}
	for _, c := range commands(newRoot(stdio{})) {
		for _, columns := range []int{80, 120} {
			var out bytes.Buffer
			args := append(strings.Fields(c.CommandPath())[1:], "--help")
			execute(t.Context(), stdio{out: &out, columns: columns}, args)
			if !strings.Contains(out.String(), "Usage:") {
				t.Fatalf("%v: %s", args, &out)
			}
			text, _, _ := strings.Cut(out.String(), "\nExamples:\n")
			_, flags, _ := strings.Cut(out.String(), "Flags:\n")
			for line := range strings.Lines(text + flags) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%v: %d wide on %d columns: %q", args, n, columns, line)
				}
			}
		}
	}
}

// toPaste reports whether a line is for a shell or a program.
func toPaste(line string) bool {
	if strings.Contains(line, "_segments:True") || strings.Contains(line, "_mb:") || strings.Contains(line, "_divisions:") {
		return true // settings
	}
	line = strings.TrimLeft(line, " 0123456789.")
	for _, begin := range []string{"export ", "import ", "ashlar.", "ashlar ", "--", "torch."} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// The width is that of COLUMNS.
func TestColumns(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, columns := range []int{80, 133} {
		t.Setenv("COLUMNS", fmt.Sprint(columns))
		if got := (stdio{out: out}).style(); got.Width != columns || got.Bold {
			t.Errorf("COLUMNS=%d: %+v", columns, got)
		}
	}
	t.Setenv("COLUMNS", "")
	if got := (stdio{out: out}).style(); got.Width != 0 {
		t.Errorf("into a file: %+v", got)
	}
}
