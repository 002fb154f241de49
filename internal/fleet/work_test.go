//go:build linux

package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// A worker says that its server has gone, once, and that it is back.
func TestServerGone(t *testing.T) {
	skipShort(t)
	dir := t.TempDir()
	server := start(t, "hub", "-dir", dir)
	for !hub.Exists(dir) {
		time.Sleep(10 * time.Millisecond)
	}
	st := openStore(t, hub.Options{Dir: dir, Follow: true})
	if st.hub.Owner() {
		t.Skip("the test was faster than the server")
	}
	said := make(chan string, 100)
	o := (&roleFlags{jobs: 2, maxTime: time.Minute}).options()
	o.Log = func(text string) { said <- text }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- st.Work(ctx, o) }()
	server.kill()
	if text := <-said; !strings.Contains(text, "has gone") || !strings.Contains(text, dir) {
		t.Errorf("%q", text)
	}
	server.start()
	if text := <-said; !strings.Contains(text, "is back") {
		t.Errorf("%q", text)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A file is found by its hash, its name and the end of its name.
func TestFindOne(t *testing.T) {
	x := &Index{files: map[string]*indexFile{}}
	for hash, name := range map[string]string{"aaaaaaaa": "in/a/s.pickle", "aaaaaabb": "in/b/s.pickle", "cccccccc": "t.pickle", "dddddddd": "in/t.pickle"} {
		x.files[hash] = &indexFile{File: File{Hash: hash, Name: name}}
	}
	for text, want := range map[string]string{
		"aaaaaaaa": "aaaaaaaa", "AAAAAAB": "aaaaaabb", "a/s.pickle": "aaaaaaaa", "in/b/s.pickle": "aaaaaabb", "t.pickle": "cccccccc",
		"s.pickle": "2 files", "aaaaaa": "2 files", "aaaaa": "", "pickle": "", "x.pickle": "",
	} {
		got, err := x.FindOne(text)
		if err != nil {
			got = err.Error()[:min(7, len(err.Error()))]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, name := range []string{"0", "aaaaaa", "ffffff"} {
		if _, err := x.Find([]string{name}, ""); err == nil {
			t.Errorf("%s is found", name)
		}
	}
}
