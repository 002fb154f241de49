package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agentOf starts ashlar mcp and a client of it, over pipes.
func agentOf(t *testing.T, root string) *mcp.ClientSession {
	t.Helper()
	t.Chdir(".") // the command goes elsewhere; this brings the test back
	asked, ask := io.Pipe()
	answered, answer := io.Pipe()
	var said bytes.Buffer
	status := make(chan int)
	go func() {
		status <- execute(context.Background(), stdio{in: asked, out: answer, err: &said}, []string{"mcp", "--root", root})
		answer.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: answered, Writer: ask}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if got := <-status; got != exitOK || said.Len() > 0 {
			t.Errorf("ashlar mcp ended with status %d and said %q", got, said.String())
		}
	})
	return s
}

// askAgent calls a tool; what it answers is a document or a refusal.
func askAgent(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (document json.RawMessage, text string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	text = r.Content[0].(*mcp.TextContent).Text
	if r.IsError != (r.StructuredContent == nil) {
		t.Errorf("%s %v: an error is %v, and the document %v", tool, arguments, r.IsError, r.StructuredContent)
	}
	if r.IsError {
		return nil, text
	}
	document, err = json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return document, text
}

// What an agent may ask is documented, and none of it writes or runs anything: a
// flag that is new to a command shows up here.
func TestAgentTools(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := agentOf(t, t.TempDir())
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint || tool.Description == "" || tool.OutputSchema == nil {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		_, row, ok := strings.Cut(string(docs), "\n| `"+tool.Name+"` |")
		if row, _, _ = strings.Cut(row, "\n"); !ok {
			t.Errorf("docs/mcp.md has no row for %s", tool.Name)
		}
		arguments := slices.Sorted(maps.Keys(tool.InputSchema.(map[string]any)["properties"].(map[string]any)))
		for _, a := range arguments {
			if a != "max_items" && !strings.Contains(row, "`"+a+"`") {
				t.Errorf("docs/mcp.md does not name %s of %s", a, tool.Name)
			}
		}
		if documented := strings.Count(row, "`") / 2; documented != len(arguments)-1 {
			t.Errorf("docs/mcp.md names %d arguments of %s, which has %d: %v", documented, tool.Name, len(arguments)-1, arguments)
		}
		for _, writes := range []string{"output", "trace", "json", "markdown", "steps", "vary", "curve"} {
			if slices.Contains(arguments, writes) {
				t.Errorf("%s has %s", tool.Name, writes)
			}
		}
	}
	if want := []string{"check", "diff", "dry", "explain", "plan", "stats", "tune", "whatif"}; !cmp.Equal(names, want) {
		t.Errorf("tools are %v, want %v", names, want)
	}
}

// A tool answers as its command does, and as its schema says.
func TestAgentAnswers(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "testdata"))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(here, filepath.FromSlash(name)) }
	died, whole, other := in("snapshots/gpt2_fixed-tight-default.pickle.gz"), in("snapshots/gpt2_fixed-default.pickle.gz"), in("snapshots/leak_graph-default.pickle.gz")
	llama, mlp := in("plan/llama-1b.json"), in("dry/mlp.dry")
	config := func(more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{"config": llama})
		return more
	}
	rough := filepath.Join(t.TempDir(), "config.json") // of a model that no family describes
	if err := os.WriteFile(rough, []byte(`{"architectures": ["NovelForCausalLM"], "model_type": "novel", "hidden_size": 64, "intermediate_size": 128,
		"num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000, "hidden_act": "silu"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := agentOf(t, "/")
	schemas := map[string]*jsonschema.Resolved{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = resolved(t, tool.OutputSchema)
	}
	asked := map[string]bool{}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		command   string
	}{
		{"explain", map[string]any{"files": []string{died}, "limit": "7609MiB"}, "explain --limit 7609MiB " + died},
		{"explain", map[string]any{"files": died, "full": true}, "explain --full " + died},
		{"explain", map[string]any{"files": []string{whole, died}}, "explain " + whole + " " + died},
		{"whatif", map[string]any{"file": died, "set": []string{"expandable_segments:True", ""}}, "whatif --set expandable_segments:True --set= " + died},
		{"tune", map[string]any{"file": died, "goal": "limit", "budget": "1h"}, "tune --goal limit --budget 1h " + died},
		{"check", map[string]any{"file": whole, "max_reserved": "1GiB", "max_ooms": 3}, "check --max-reserved 1GiB --max-ooms 3 " + whole},
		{"diff", map[string]any{"files": []string{whole, died}}, "diff " + whole + " " + died},
		{"diff", map[string]any{"files": []string{whole, died, other}}, "diff " + whole + " " + died + " " + other},
		{"stats", map[string]any{"file": whole, "device": 0}, "stats --device 0 " + whole},
		{"plan", config(map[string]any{"batch": 4, "seq": "2048", "gpu": "24GB"}), "plan " + llama + " --batch 4 --seq 2048 --gpu 24GB"},
		{"plan", config(map[string]any{"seq": 512, "gpu": "24GB", "sweep": []string{"batch=1,2"}}), "plan " + llama + " --seq 512 --gpu 24GB --sweep batch=1,2"},
		{"plan", config(map[string]any{"batch": 1, "seq": 512, "compare": "h100,h200"}), "plan " + llama + " --batch 1 --seq 512 --compare h100,h200"},
		{"plan", config(map[string]any{"serve": "vllm", "max_model_len": 2048, "gpu": "h100"}), "plan " + llama + " --serve vllm --max-model-len 2048 --gpu h100"},
		{"plan", map[string]any{"config": rough, "batch": 1, "seq": 64}, "plan " + rough + " --batch 1 --seq 64"},
		{"dry", map[string]any{"ledger": mlp, "gpu": "h100"}, "dry " + mlp + " --gpu h100"},
	} {
		if testing.Short() && (asked[c.tool] || c.tool == "tune") {
			continue
		}
		asked[c.tool] = true
		short, text := askAgent(t, s, c.tool, c.arguments)
		if text == "" || short == nil {
			t.Fatalf("%s %v: %s", c.tool, c.arguments, text)
		}
		c.arguments["max_items"] = 10_000
		document, _ := askAgent(t, s, c.tool, c.arguments)
		for _, d := range []json.RawMessage{short, document} {
			if err := schemas[c.tool].Validate(decoded(t, d)); err != nil {
				t.Errorf("%s: the document is not as its schema says: %v", c.command, err)
			}
		}
		var out bytes.Buffer
		execute(t.Context(), stdio{in: strings.NewReader(""), out: &out, err: io.Discard}, append(strings.Fields(c.command), "--json"))
		if diff := cmp.Diff(steady(t, out.Bytes()), steady(t, document)); diff != "" {
			t.Errorf("%s: the tool's document is another one (-command +tool):\n%.2000s", c.command, diff)
		}
	}
}

func resolved(t *testing.T, schema any) *jsonschema.Resolved {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return v
}

// steady is a document without how long it took.
func steady(t *testing.T, raw []byte) map[string]any {
	v := decoded(t, raw)
	for _, took := range []string{"seconds", "elapsed_seconds", "search_seconds"} {
		delete(v, took)
	}
	return v
}

// A long answer says what is left out, in the document and in the text.
func TestAgentAnswersAreShort(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "testdata"))
	s := agentOf(t, ".")
	arguments := map[string]any{"files": []string{"snapshots/gpt2_fixed-tight-default.pickle.gz"}}
	document, text := askAgent(t, s, "explain", arguments)
	if d := decoded(t, document); d["cut"] == nil || !strings.Contains(text, "give max_items") {
		t.Errorf("nothing is cut: %s", text)
	}
	if len(document) > 64<<10 {
		t.Errorf("the document has %d bytes", len(document))
	}
}

// Nothing of a question stays when it was answered.
func TestAgentForgets(t *testing.T) {
	s := agentOf(t, t.TempDir())
	held := func() uint64 {
		for range 50 {
			askAgent(t, s, "stats", map[string]any{"file": "none"})
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	if after := held(); after > before+8<<20 {
		t.Errorf("50 questions leave %d MiB", (after-before)>>20)
	}
}
