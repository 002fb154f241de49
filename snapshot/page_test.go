package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// viewerPage wraps a pickle as torch/cuda/_memory_viz.py does.
func viewerPage(pickle []byte) string {
	padded := append(bytes.Clone(pickle), make([]byte, 3-len(pickle)%3)...)
	return "\n<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\n" +
		`import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"` + "\n" +
		`const local_files = [{"name": "snapshot.pickle", "base64": "` + base64.StdEncoding.EncodeToString(padded) + `"}]` + "\n" +
		"add_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n"
}

func readPage(t *testing.T, page string) (*File, error) {
	t.Helper()
	return Read(context.Background(), "page.html", strings.NewReader(page), Options{})
}

// TestPage: the page of a snapshot is read as the snapshot itself, also
// compressed, and saved by a browser.
func TestPage(t *testing.T) {
	for _, name := range []string{"cpp_snapshot.pickle", "py_snapshot.pickle"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Read(context.Background(), name, bytes.NewReader(raw), Options{})
		if err != nil {
			t.Fatal(err)
		}
		page := viewerPage(raw)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(page))
		z.Close()
		saved := strings.Replace(page, "<!DOCTYPE html>\n<html>", "<html><!-- saved from url=(0030)file:///tmp/"+strings.Repeat("x", 70_000)+" -->", 1)
		for kind, text := range map[string]string{"page": page, "compressed": packed.String(), "saved": saved, "spaced": strings.Replace(page, `"base64": "`, `"base64" : "`, 1)} {
			got, err := readPage(t, text)
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			gotEvents, gotSegments := got.content()
			wantEvents, wantSegments := want.content()
			if gotEvents != wantEvents || gotSegments != wantSegments || got.Format != "pickle" || !got.Page || len(got.Warnings) != len(want.Warnings) {
				t.Errorf("%s, %s: %d events of %d, %d segments of %d, %q", name, kind, gotEvents, wantEvents, gotSegments, wantSegments, got.Warnings)
			}
		}
		if _, err := readPage(t, page[:len(page)*2/3]); err == nil || !strings.Contains(err.Error(), "the file ends early") {
			t.Errorf("%s, cut off: %v", name, err)
		}
	}
}

// TestPageWithout: pages that hold no snapshot, or damage.
func TestPageWithout(t *testing.T) {
	for text, want := range map[string]string{
		"<html><body>hello</body></html>":                           "an HTML page without a snapshot in it",
		"<!doctype html>" + strings.Repeat("a", pageHead+10):        "an HTML page without a snapshot in it",
		`<html>"base64": "!!!!"`:                                    "illegal base64",
		`<html>"base64": ""`:                                        "EOF",
		viewerPage([]byte("hello world, this is no pickle at all")): "seems to be other binary data",
		viewerPage([]byte("\x80\x02}q\x00.")):                       "an empty dictionary in a pickle",
	} {
		_, err := readPage(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	var format *FormatError
	if _, err := readPage(t, "<html></html>"); !errors.As(err, &format) {
		t.Errorf("%v", err)
	}
}
