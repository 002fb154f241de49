package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What lies outside of the root is not read, whatever names it.
func TestAgentIsRefused(t *testing.T) {
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(repository, "testdata", "snapshots", "gpt2_fixed-default.pickle.gz")
	config := filepath.Join(repository, "testdata", "plan", "llama-1b.json")
	outside := t.TempDir()
	root := filepath.Join(t.TempDir(), "root")
	write := func(dir, name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "secret.json", `{"zero_optimization": {"stage": "a secret"}}`)
	write(outside, "hub/models--who/placeholder", "")
	write(outside, "hub/models--who--what/refs/main", "abc")
	write(outside, "hub/models--who--what/snapshots/abc/config.json", `{"model_type": "llama", "secret": 1}`)
	t.Setenv("HF_HUB_CACHE", filepath.Join(outside, "hub"))
	plain, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(root, "config.json", string(plain))
	write(root, "broken.pickle", "\x80\x02}q\x00(X")
	write(root, "names-deepspeed.json", `{"per_device_train_batch_size": 1, "deepspeed": "`+outside+`/secret.json"}`)
	write(root, "names-model.yml", "base_model: "+config+"\nmicro_batch_size: 1\nsequence_len: 128\n")
	write(root, "pipeline/model_index.json", `{"_class_name": "FluxPipeline", "unet": ["diffusers", "UNet"]}`)
	write(root, "-dash.log", "nothing")
	link(snapshot, "link.pickle.gz")
	link(filepath.Dir(snapshot), "links")
	link(filepath.Join(outside, "nothing"), "dangling.pickle")
	link(config, "model/config.json")
	link(filepath.Dir(config), "pipeline/unet")
	link(snapshot, "ranks/0.pickle.gz")
	link(snapshot, "ranks/1.pickle.gz")

	s := agentOf(t, root)
	one := map[string]any{"batch": 1, "seq": 128}
	plan := func(name, value string) map[string]any {
		return map[string]any{"batch": one["batch"], "seq": one["seq"], "config": "config.json", name: value}
	}
	const out = "reads no file there"
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"explain", map[string]any{"files": []string{snapshot}}, out},
		{"explain", map[string]any{"files": []string{"../" + filepath.Base(root) + "/config.json"}}, ".. is not followed"},
		{"explain", map[string]any{"files": []string{"link.pickle.gz"}}, out},
		{"explain", map[string]any{"files": []string{"links/gpt2_fixed-default.pickle.gz"}}, out},
		{"explain", map[string]any{"files": []string{"links"}}, out},
		{"explain", map[string]any{"files": []string{"links/*.gz"}}, out},
		{"explain", map[string]any{"files": []string{"dangling.pickle"}}, "leads nowhere"},
		{"explain", map[string]any{"files": []string{"-"}}, "belongs to the client"},
		{"explain", map[string]any{"files": []string{""}}, "empty"},
		{"explain", map[string]any{"message": snapshot}, "no out-of-memory message in the text"},
		{"explain", map[string]any{"message": "x CUDA out of memory. Tried to allocate 2.00 GiB", "stats": snapshot}, out},
		{"explain", map[string]any{"message": "CUDA out of memory", "source": outside}, out},
		{"explain", map[string]any{"files": []string{"ranks"}}, "0.pickle.gz"},
		{"diff", map[string]any{"files": []string{"ranks/*.gz"}}, "none of the files can be compared"},
		{"whatif", map[string]any{"file": snapshot, "limit": "1GiB"}, out},
		{"tune", map[string]any{"file": "link.pickle.gz"}, out},
		{"stats", map[string]any{"file": "/proc/self/environ"}, out},
		{"check", map[string]any{"file": "config.json", "baseline": snapshot, "max_growth": 3}, out},
		{"dry", map[string]any{"ledger": filepath.Join(repository, "testdata", "dry", "mlp.dry")}, out},
		{"dry", map[string]any{"ledger": "--trace=x.pickle"}, "no such file"},
		{"plan", plan("config", config), out},
		{"plan", plan("config", "model"), out},
		{"plan", plan("config", "pipeline"), out},
		{"plan", plan("config", "who/what"), out},
		{"plan", plan("trainer", "names-deepspeed.json"), out},
		{"plan", map[string]any{"trainer": "names-model.yml"}, out},
		{"plan", plan("deepspeed", filepath.Join(outside, "secret.json")), out},
		{"plan", plan("weights", "model"), out},
		{"plan", plan("against", snapshot), out},
		{"plan", plan("trace", "x.pickle"), `no argument "trace"`},
		{"plan", plan("output", "x.svg"), `no argument "output"`},
		{"plan", plan("gpu", "a hundred"), "--gpu"},
		{"stats", map[string]any{"file": "broken.pickle"}, "broken.pickle"},
		{"stats", map[string]any{"file": "nothing.pickle"}, "no such file"},
		{"stats", map[string]any{"file": []any{"broken.pickle", "config.json"}}, "takes one FILE"},
		{"stats", map[string]any{"file": map[string]any{}}, "write a text"},
		{"stats", map[string]any{}, "needs the argument file"},
		{"stats", map[string]any{"file": "-dash.log"}, "./-dash.log"},
		{"stats", map[string]any{"file": "config.json", "max_items": 1}, "max_items is 1"},
		{"whatif", map[string]any{"file": "config.json", "limit": []string{"1GiB", "2GiB"}}, "one value"},
	} {
		document, text := askAgent(t, s, c.tool, c.arguments)
		if document != nil || !strings.Contains(text, c.want) || strings.Contains(text, "secret\"") || strings.Contains(text, "a secret") {
			t.Errorf("%s %v: %s, want a refusal with %q", c.tool, c.arguments, text, c.want)
		}
	}
	if document, text := askAgent(t, s, "plan", plan("gpu", "h100")); document == nil {
		t.Errorf("a plan of a file in the root is refused: %s", text)
	}
	if document, text := askAgent(t, s, "plan", plan("config", filepath.Join(root, "config.json"))); document == nil {
		t.Errorf("an absolute name in the root is refused: %s", text)
	}
	left, err := filepath.Glob(filepath.Join(root, "x.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("written: %v %v", left, err)
	}
}
