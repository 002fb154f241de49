package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// beside opens the same files with PyTorch's memory_viz and with ashlar, each in
// a browser of its own, and compares the time until a curve is drawn and the
// memory that takes. The folder has MemoryViz.js and what it imports, as torch
// has it in torch/utils/viz, and node_modules with d3 5.
func beside(ashlar, folder, source, million string) error {
	dir := filepath.Dir(million)
	viz := httptest.NewServer(memoryViz(folder, dir))
	defer viz.Close()
	fmt.Println("| file | events | memory_viz opens | ashlar view | ashlar, no server | memory_viz holds | ashlar view | ashlar, no server |\n|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, name := range []string{"gpt2_varlen-tight-default", "leak_graph-tight-default", "serve_generate-default", million} {
		file := name
		if name != million {
			file = filepath.Join(dir, name+".pickle")
			if err := unpack(file, filepath.Join(filepath.Dir(source), name+".pickle.gz")); err != nil {
				return err
			}
		}
		var cells []string
		for _, open := range []func() (opened, error){
			func() (opened, error) { return openMemoryViz(viz.URL, filepath.Base(file)) },
			func() (opened, error) { return openView(ashlar, file) },
			func() (opened, error) { return openOffline(ashlar, dir, file) },
		} {
			o, err := open()
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			cells = append(cells, o.time, o.memory)
		}
		fmt.Printf("| %s | | %s | %s | %s | %s | %s | %s |\n", strings.TrimSuffix(filepath.Base(file), ".pickle"), cells[0], cells[2], cells[4], cells[1], cells[3], cells[5])
	}
	return nil
}

// opened is what opening a file took.
type opened struct{ time, memory string }

// alone measures in a browser of its own, so that its memory is that of one page.
// The browser runs already when the measurement begins.
func alone(measure func(b *page.Browser) (opened, error)) (opened, error) {
	b, err := page.Launch(context.Background())
	if err != nil {
		return opened{}, err
	}
	defer b.Close()
	blank, err := b.Open("about:blank", 1600, 900, false)
	if err != nil {
		return opened{}, err
	}
	blank.Close()
	return measure(b)
}

// timeline opens an address and measures until its timeline is drawn, and the
// memory of the page.
func timeline(b *page.Browser, address string, began time.Time) (time.Duration, int64, error) {
	p, err := b.Open(address+"#/1/timeline", 1600, 900, false)
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	took, err := until(p, began, drawn)
	if err != nil {
		return 0, 0, err
	}
	pss, err := renderer(b.PID())
	return took, pss, err
}

// openMemoryViz drops a file onto memory_viz. What it cannot draw within the
// patience, or what ends its tab, is said so.
func openMemoryViz(address, name string) (opened, error) {
	return alone(func(b *page.Browser) (opened, error) {
		p, err := b.Open(address, 1600, 900, false)
		if err != nil {
			return opened{}, err
		}
		defer p.Close()
		if err := p.Until("document.querySelectorAll('select').length > 1", patience); err != nil {
			return opened{}, err
		}
		began := time.Now()
		err = p.Value(`fetch('/file/`+name+`').then((r) => r.blob()).then((b) => {
			const t = new DataTransfer();
			t.items.add(new File([b], 'x.pickle'));
			document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: t, bubbles: true}));
		})`, nil)
		if err != nil {
			return opened{}, err
		}
		took, err := until(p, began, "document.querySelector('svg polygon')")
		if err != nil {
			return opened{time: fmt.Sprintf("not within %v", patience), memory: "-"}, nil //nolint:nilerr // that is the measurement
		}
		pss, err := renderer(b.PID())
		return opened{seconds(took), megabytes(pss)}, err
	})
}

func openView(ashlar, file string) (opened, error) {
	return alone(func(b *page.Browser) (opened, error) {
		s, err := page.Serve(ashlar, file)
		if err != nil {
			return opened{}, err
		}
		defer s.Close()
		took, pss, err := timeline(b, s.Address, s.Started)
		if err != nil {
			return opened{}, err
		}
		rss, _, err := resident(s.PID())
		return opened{seconds(took), megabytes(pss + rss)}, err
	})
}

func openOffline(ashlar, dir, file string) (opened, error) {
	address, _, err := writeOffline(ashlar, filepath.Join(dir, "page.html"), file)
	if err != nil {
		return opened{}, err
	}
	return alone(func(b *page.Browser) (opened, error) {
		took, pss, err := timeline(b, address, time.Now())
		return opened{seconds(took), megabytes(pss)}, err
	})
}

// memoryViz serves memory_viz from a folder, its imports answered by the modules
// of d3 that npm installed, and files to open.
func memoryViz(folder, files string) http.Handler {
	const cdn = "https://cdn.skypack.dev/"
	var imports []string
	modules, _ := filepath.Glob(filepath.Join(folder, "node_modules", "d3*"))
	for _, m := range modules {
		name := filepath.Base(m)
		index := "/node_modules/" + name + "/src/index.js"
		if name == "d3" {
			index = "/node_modules/d3/index.js"
		}
		imports = append(imports, page.Quote(name)+":"+page.Quote(index))
		for _, version := range []string{"1", "5"} {
			imports = append(imports, page.Quote(cdn+name+"@"+version)+":"+page.Quote(index))
		}
	}
	html := `<!doctype html><html><head><script type="importmap">{"imports":{` + strings.Join(imports, ",") +
		`}}</script></head><body><script type="module" src="/MemoryViz.js"></script></body></html>`
	mux := http.NewServeMux()
	mux.Handle("/file/", http.StripPrefix("/file/", http.FileServer(http.Dir(files))))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, html)
			return
		}
		name := filepath.Join(folder, filepath.FromSlash(path.Clean("/"+r.URL.Path)))
		if filepath.Ext(name) == "" { // d3 imports without the ending
			if _, err := os.Stat(name + ".js"); err == nil {
				name += ".js"
			} else {
				name = filepath.Join(name, "index.js")
			}
		}
		http.ServeFile(w, r, name)
	})
	return mux
}

func unpack(to, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, z); err != nil {
		return err
	}
	return out.Close()
}
