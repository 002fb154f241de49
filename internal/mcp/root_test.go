package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	for name, to := range map[string]string{
		"out":           outside,
		"in":            "folder",
		"folder/up":     "..",
		"folder/secret": filepath.Join(outside, "secret"),
		"gone":          filepath.Join(outside, "gone"),
		"model/a.json":  filepath.Join(outside, "secret"),
		"model/a.png":   filepath.Join(outside, "secret"),
		"deep/a":        "../model",
		"plain/a.png":   filepath.Join(outside, "secret"),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(outside, "secret"), "folder/file", "model/config.json", "plain/config.json", "deep/model_index.json"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]string{
		"folder/file":                        "",
		"./folder/file":                      "",
		"in/file":                            "",
		"folder/up/folder/file":              "",
		"folder/no such file":                "",
		"no such folder/file":                "",
		".":                                  "",
		dir:                                  "",
		filepath.Join(dir, "folder"):         "",
		"..":                                 "..",
		"folder/../folder/file":              "..",
		"out/../folder/file":                 "..",
		"out":                                "outside",
		"out/secret":                         "outside",
		"out/no such file":                   "outside",
		"folder/secret":                      "outside",
		"in/secret":                          "outside",
		"gone":                               "leads nowhere",
		outside:                              "outside",
		dir + "x":                            "outside",
		filepath.Join(outside, "x", "y", ""): "outside",
		"/":                                  "outside",
	} {
		if err := r.Check(path); (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", path, err, refused)
		}
	}
	for path, refused := range map[string]string{
		"plain":                 "",
		"plain/config.json":     "",
		"folder/file":           "",
		"model":                 "outside",
		"model/config.json":     "outside",
		"deep":                  "outside", // a folder that links to one with a link
		"deep/model_index.json": "outside",
		"no such":               "",
	} {
		if err := r.CheckModel(path); (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("model %s: %v, want %q", path, err, refused)
		}
	}
	for _, dir := range []string{"folder/file", "no such folder"} {
		if _, err := OpenRoot(dir); err == nil {
			t.Errorf("%s is a root", dir)
		}
	}
}
