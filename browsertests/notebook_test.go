package browsertests

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Somebody calls show in a notebook: the page answers inside the cell's frame,
// and its screens can be changed there.
func TestNotebook(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	file := filepath.Join(t.TempDir(), "cell.html")
	script := `import sys; sys.path.insert(0, "../python")
from ashlar_mem import notebook
open(sys.argv[2], "w", encoding="utf-8").write("<!doctype html><meta charset=utf-8>" + notebook.frame(notebook.report(sys.argv[1])))`
	show := exec.Command(python, "-B", "-c", script, varlen, file)
	show.Env = append(os.Environ(), "ASHLAR_BIN="+stage.ashlar)
	if out, err := show.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p, err := stage.browser.Open((&url.URL{Scheme: "file", Path: file}).String(), 1600, 900, false)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, page: p}
	t.Cleanup(func() {
		s.noProblems()
		p.Close()
	})
	const inner = "document.querySelector('iframe').contentDocument"
	s.until(inner + ".querySelector('[data-field=cause]')?.innerText === 'fragmentation'")
	s.value("void "+inner+".body.dispatchEvent(new KeyboardEvent('keydown', {key: '2', bubbles: true}))", nil)
	s.until(inner + ".location.href.startsWith('about:srcdoc#/1/timeline')")
}
