package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	cache := t.TempDir()
	llama := filepath.Join(cache, "models--meta-llama--Llama-3.1-8B")
	write(t, filepath.Join(llama, "refs", "main"), "abc\n")
	write(t, filepath.Join(llama, "refs", "v2"), "def")
	for _, hash := range []string{"abc", "def"} {
		write(t, filepath.Join(llama, "snapshots", hash, "config.json"), "{}")
	}
	write(t, filepath.Join(cache, "models--gpt2", "snapshots", "only", "config.json"), "{}")
	write(t, filepath.Join(cache, "models--a--two", "snapshots", "x", "config.json"), "{}")
	write(t, filepath.Join(cache, "models--a--two", "snapshots", "y", "config.json"), "{}")
	write(t, filepath.Join(cache, "models--a--weights", "snapshots", "x", "model.safetensors"), "")
	write(t, filepath.Join(cache, "models--a--evil", "refs", "main"), "../../models--gpt2/snapshots/only")
	for model, want := range map[string]string{
		"meta-llama/Llama-3.1-8B": "abc", "meta-llama/Llama-3.1-8B@v2": "def", "meta-llama/Llama-3.1-8B@abc": "abc", "gpt2": "only",
	} {
		dir, err := Find(model, []string{t.TempDir(), cache})
		if err != nil || filepath.Base(dir) != want {
			t.Errorf("%s: %s, %v", model, dir, err)
		}
	}
	for model, want := range map[string]string{
		"meta-llama/Llama-3.2-1B": "run hf download meta-llama/Llama-3.2-1B config.json", "meta-llama/Llama-3.1-8B@v3": "hf download meta-llama/Llama-3.1-8B --revision v3 config.json",
		"a/two": cache, "a/weights": "config.json", "a/evil": cache,
	} {
		if dir, err := Find(model, []string{cache}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", model, dir, err)
		}
	}
}

func TestCaches(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/h"}, "/h/.cache/huggingface/hub"},
		{map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"},
		{map[string]string{"HOME": "/h", "HF_HOME": "/f"}, "/f/hub"},
		{map[string]string{"HF_HOME": "/f", "HF_HUB_CACHE": "/c"}, "/c"},
	} {
		if got := Caches(func(v string) string { return tt.env[v] }); len(got) != 1 || filepath.ToSlash(got[0]) != tt.want {
			t.Errorf("%v: %q", tt.env, got)
		}
	}
}

func TestIsName(t *testing.T) {
	for text, want := range map[string]bool{
		"meta-llama/Llama-3.1-8B": true, "gpt2": true, "Qwen/Qwen2.5-0.5B@main": true, "config.json": false, "a/b/c": false, "./x": false, "/x": false, "-": false,
		"../x": false, "a/..": false, "args.yaml": false, "": false,
	} {
		if IsName(text) != want {
			t.Errorf("IsName(%q) is %v", text, !want)
		}
	}
}
