//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// put writes a file of a folder, and what it lies in. A text that begins with -> is
// a link, and "pipe" a pipe that nobody writes to.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if to, link := strings.CutPrefix(text, "->"); link {
		err = os.Symlink(to, path)
	} else if text == "pipe" {
		err = syscall.Mkfifo(path, 0o600)
	} else if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What never ends, or is a pipe in a folder, is refused in one line, and soon.
func TestEndless(t *testing.T) {
	const pipeline, index = `{"_class_name": "FluxPipeline", "vae": ["diffusers", "AutoencoderKL"]}`, `{"metadata": {"total_size": 8}, "weight_map": {"a": "one.safetensors"}}`
	const irregular, long = " is not a regular file", ": more than 1 MiB: this is no "
	for _, tt := range []struct {
		name    string
		files   map[string]string
		command string // with DIR in place of the folder
		want    string
	}{
		{"alarms", nil, "watch --once --no-nvml --dir DIR/store --alarms /dev/zero", "--alarms: /dev/zero" + long + "list of alarms"},
		{"ca", nil, "fleet status --hub tls://127.0.0.1:1 --ca /dev/zero", "/dev/zero" + irregular},
		{"creds", nil, "fleet status --hub nats://127.0.0.1:1 --creds /dev/zero", "/dev/zero" + irregular},
		{"certificate", nil, "watch --no-nvml --dir DIR/store --listen unix:DIR/s --metrics 127.0.0.1:0 --metrics-cert /dev/zero --metrics-key /dev/zero --metrics-token-file DIR/token", "/dev/zero" + long + "certificate"},
		{"costs", nil, "policies " + served + " --costs /dev/zero", "/dev/zero: more than 16 MiB"},
		{"page of a pipe", map[string]string{"p": "pipe"}, "report --interactive DIR/p -o DIR/o.html", "DIR/p" + irregular + ": give a pipe as standard input"},
		{"page of standard input", nil, "report --interactive - -o DIR/o.html", "stdin"},
		{"recipe", nil, "plan --trainer /dev/zero", "/dev/zero: more than 4 MiB: this is no configuration"},
		{"named recipe", map[string]string{"t.yml": "deepspeed: d.json\n", "d.json": "pipe"}, "plan --trainer DIR/t.yml", "DIR/d.json" + irregular},
		{"named model", map[string]string{"t.yml": "base_model: DIR/m\nmicro_batch_size: 1\nsequence_len: 8\n", "m": "pipe"}, "plan --trainer DIR/t.yml", "DIR/m" + irregular},
		{"ref", map[string]string{"models--a--b/refs/main": "->/dev/zero"}, "plan a/b", "DIR/models--a--b/refs/main" + irregular},
		{"config", map[string]string{"c/config.json": "pipe"}, "plan DIR/c", "DIR/c/config.json" + irregular},
		{"config of a part", map[string]string{"model_index.json": pipeline, "vae/config.json": "->/dev/zero"}, "plan DIR", "DIR/vae/config.json" + irregular},
		{"index of parts", map[string]string{"model_index.json": "pipe"}, "plan DIR", "DIR/model_index.json" + irregular},
		{"weights", map[string]string{"model.safetensors": "pipe"}, "plan DIR", "DIR/model.safetensors" + irregular},
		{"index", map[string]string{"model.safetensors.index.json": "pipe"}, "plan DIR", "DIR/model.safetensors.index.json" + irregular},
		{"endless index", map[string]string{"model.safetensors.index.json": "->/dev/zero"}, "plan DIR", "DIR/model.safetensors.index.json" + irregular},
		{"shard", map[string]string{"model.safetensors.index.json": index, "one.safetensors": "pipe"}, "plan DIR", "DIR/one.safetensors" + irregular},
		{"shard beside a config", map[string]string{"config.json": `{"model_type": "odd"}`, "model.safetensors.index.json": index, "one.safetensors": "pipe"}, "plan DIR/config.json", "DIR/one.safetensors" + irregular},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("HF_HUB_CACHE", dir)
			put(t, dir, "token", strings.Repeat("t", 40))
			for name, text := range tt.files {
				put(t, dir, name, strings.ReplaceAll(text, "DIR", dir))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it hangs
			defer cancel()
			var out, said bytes.Buffer
			status := execute(ctx, stdio{in: zeros{}, out: &out, err: &said}, strings.Fields(strings.ReplaceAll(tt.command, "DIR", dir)))
			line := said.String()
			if want := strings.ReplaceAll(tt.want, "DIR", dir); status != exitInput || !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
				t.Errorf("status %d, said %q, want %q", status, line, want)
			}
		})
	}
}

// A pipe under the root holds no other question up.
func TestAgentMeetsPipe(t *testing.T) {
	root := t.TempDir()
	put(t, root, "ff", "pipe")
	put(t, root, "to", "->ff")
	put(t, root, "m/config.json", "pipe")
	put(t, root, "m/model.safetensors", "pipe")
	s := agentOf(t, root)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"stats", map[string]any{"file": "ff"}, "ff is not a regular file"},
		{"explain", map[string]any{"files": []string{"to"}}, "to is not a regular file"},
		{"explain", map[string]any{"files": []string{"f*"}}, "ff is not a regular file"},
		{"dry", map[string]any{"ledger": "ff"}, "ff is not a regular file"},
		{"plan", map[string]any{"config": "m"}, "m/config.json is not a regular file"},
		{"plan", map[string]any{"trainer": "ff"}, "ff is not a regular file"},
		{"stats", map[string]any{"file": "none"}, "none"},
	} {
		document, text := askAgent(t, s, c.tool, c.arguments)
		if document != nil || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("%s %v: %s %q, want %q", c.tool, c.arguments, document, text, c.want)
		}
	}
}
