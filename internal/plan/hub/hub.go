package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

// name is what a model may be called: an owner and a name, or a name alone for
// the oldest ones, and a revision behind an @.
var name = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*(@[\w./-]+)?$`)

// IsName reports whether a text may name a model of the hub: it is no path of a
// file, and nothing in a folder.
func IsName(text string) bool {
	if !name.MatchString(text) || strings.Contains(text, "..") {
		return false
	}
	switch strings.ToLower(filepath.Ext(text)) {
	case ".json", ".yaml", ".yml", ".safetensors", ".gz", ".zst", ".pickle", ".txt":
		return false
	}
	return true
}

// Caches lists where transformers would look, with the environment that getenv
// returns: the folder that a variable names, or else the default.
func Caches(getenv func(string) string) []string {
	for _, v := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"} {
		if dir := getenv(v); dir != "" {
			return []string{dir}
		}
	}
	if home := getenv("HF_HOME"); home != "" {
		return []string{filepath.Join(home, "hub")}
	}
	cache := getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(getenv("HOME"), ".cache")
	}
	return []string{filepath.Join(cache, "huggingface", "hub")}
}

// Find returns the folder with a model's config.json.
func Find(model string, caches []string) (string, error) {
	repo, revision, _ := strings.Cut(model, "@")
	folder := "models--" + strings.ReplaceAll(repo, "/", "--")
	for _, c := range caches {
		if dir, err := snapshot(filepath.Join(c, folder), revision); dir != "" || err != nil {
			return dir, err
		}
	}
	command := "hf download " + repo
	if revision != "" {
		command += " --revision " + revision
	}
	return "", fmt.Errorf("%s is no file or folder here, and no model with a config.json in the Hugging Face cache (%s); for a model of the hub, run %s config.json",
		model, strings.Join(caches, ", "), command)
}

// maxRef is far above any name of a revision.
const maxRef = 1 // MiB

// snapshot returns the snapshot of a revision, of main if it is empty, or of the
// only one there is.
func snapshot(repo, revision string) (string, error) {
	ref := revision
	if ref == "" {
		ref = "main"
	}
	hash := revision
	text, err := guard.ReadRegular(filepath.Join(repo, "refs", filepath.FromSlash(ref)), maxRef, "revision")
	var refused *guard.RefusedError
	switch {
	case errors.As(err, &refused):
		return "", err
	case err == nil:
		hash = strings.TrimSpace(string(text))
	}
	if hash != "" && filepath.IsLocal(hash) {
		if dir := filepath.Join(repo, "snapshots", hash); hasConfig(dir) {
			return dir, nil
		}
	}
	if revision != "" {
		return "", nil
	}
	found := ""
	all, err := os.ReadDir(filepath.Join(repo, "snapshots"))
	if err != nil {
		return "", nil
	}
	for _, e := range all {
		if dir := filepath.Join(repo, "snapshots", e.Name()); hasConfig(dir) {
			if found != "" {
				return "", nil
			}
			found = dir
		}
	}
	return found, nil
}

// hasConfig reports whether a folder is that of a model, or of a pipeline of
// diffusers.
func hasConfig(dir string) bool {
	for _, name := range []string{"config.json", "model_index.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}
