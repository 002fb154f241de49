package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// A plan on the page is the document of the command, to the byte.
func TestViewPlansAsTheCommand(t *testing.T) {
	short.Skip(t)
	dir, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	recorded := filepath.Join(dir, "plan", "recordings", "odd.pickle.gz")
	address, end := startView(t, recorded)
	settled(t, address)
	config, err := os.ReadFile(filepath.Join(dir, "plan", "llama-1b.json"))
	if err != nil {
		t.Fatal(err)
	}
	qwen := []byte(`{"model_type": "qwen3", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
		"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": true}`)
	t.Chdir(t.TempDir())
	for _, x := range []struct {
		config   []byte
		args     []string
		question string
	}{
		{config, []string{"--batch", "2", "--seq", "1000"}, `"options": {"batch": "2", "seq": "1000"}`},
		{
			config,
			[]string{"--batch", "8", "--seq", "2048", "--attention", "flash", "--clip", "--gpu", "a100-40", "--curve", "77"},
			`"options": {"batch": "8", "seq": "2048", "attention": "flash", "clip": "true"}, "gpu": "a100-40", "curve": 77`,
		},
		{
			config,
			[]string{"--seq", "512", "--limit", "20GiB", "--max", "batch", "--settings", "max_split_size_mb:64"},
			`"options": {"seq": "512"}, "limit": "20GiB", "max": "batch", "settings": "max_split_size_mb:64"`,
		},
		{
			config,
			[]string{"--batch", "4", "--seq", "2048", "--gpu", "24GiB", "--recompute", "best"},
			`"options": {"batch": "4", "seq": "2048", "recompute": "best"}, "gpu": "24GiB"`,
		},
		{config, []string{"--batch", "2", "--seq", "64", "--head", "causal"}, `"options": {"batch": "2", "seq": "64"}, "head": "causal"`},
		{
			qwen,
			[]string{"--batch", "3", "--seq", "1777", "--dtype", "bf16", "--against", recorded, "--curve", "500"},
			`"options": {"batch": "3", "seq": "1777", "dtype": "bf16"}, "against": 1, "curve": 500`,
		},
	} {
		if err := os.WriteFile("config.json", x.config, 0o600); err != nil {
			t.Fatal(err)
		}
		var want, stderr bytes.Buffer
		if code := execute(t.Context(), stdio{out: &want, err: &stderr}, append([]string{"plan", "config.json", "--json"}, x.args...)); code == exitInput {
			t.Fatalf("%q: %s", x.args, &stderr)
		}
		text, err := json.Marshal(string(x.config))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.Post(address+"api/plan", "application/json", bytes.NewBufferString(`{"version": 1, "config": `+string(text)+`, `+x.question+`}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode != http.StatusOK || !bytes.Equal(body, want.Bytes()) {
			t.Errorf("%q: status %d, the page has %d bytes, the command %d", x.args, reply.StatusCode, len(body), want.Len())
		}
	}
	if code, said := end(); code != exitOK || said != "" {
		t.Errorf("status %d, %q", code, said)
	}
}
