package offline

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/ascii85"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"

	"github.com/ashlar-mem/ashlar/internal/view"
)

// ErrNoEngine says that this program was built without the engine of such pages.
var ErrNoEngine = errors.New("this ashlar was built without the engine that such a page needs: build it with make build in its source tree")

// MaxBytes is the size of the largest recording that fits a page, compressed:
// browsers read a page as one text, which must stay under 512 MiB.
const MaxBytes = 384 << 20

//go:embed engine
var embedded embed.FS

// Write writes the page with the files in it. The error is [ErrNoEngine] if there
// is no engine.
func Write(w io.Writer, files ...view.File) error {
	engine, err := fs.Sub(embedded, "engine")
	if err != nil {
		return err
	}
	return write(w, engine, files)
}

// The document around the parts of a page.
const (
	top = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ashlar</title>
<link rel="icon" href="data:,">
<style>`
	body = `</style>
</head>
<body>
<div id="app"></div>
<noscript>Ashlar draws this page with JavaScript; ashlar report without --interactive writes one that needs none.</noscript>
`
	bottom = "</body>\n</html>\n"
)

// policy lets the page use what it holds, and nothing else. The worker is made
// from its text and lives under the same policy.
func policy(script, style []byte) string {
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script) + " 'wasm-unsafe-eval'; worker-src blob:; style-src " + hash(style) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func write(w io.Writer, engine fs.FS, files []view.File) error {
	wasm, err := fs.ReadFile(engine, "ashlar.wasm.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoEngine
	}
	glue, missing := fs.ReadFile(engine, "wasm_exec.js")
	if err = errors.Join(err, missing); err != nil {
		return err
	}
	var parts [3][]byte // script, style, worker
	for i, name := range []string{"app.js", "app.css", "worker.js"} {
		if parts[i], err = view.Bundle("assets/" + name); err != nil {
			return err
		}
	}
	script, style, worker := parts[0], parts[1], append(glue, parts[2]...)
	for _, b := range [][]byte{script, worker, style} {
		if low := bytes.ToLower(b); bytes.Contains(low, []byte("</script")) || bytes.Contains(low, []byte("<!--")) || bytes.Contains(low, []byte("</style")) {
			return errors.New("the page's own script would end its element")
		}
	}
	p := &page{w: w}
	p.print(top, html.EscapeString(policy(script, style)))
	p.write(style)
	p.print(body)
	p.block(`id="worker"`, worker)
	p.block(`id="engine"`, encode(wasm))
	for _, f := range files {
		data, err := packed(f.Data)
		if err != nil {
			return err
		}
		if len(data) > MaxBytes {
			return fmt.Errorf("%s has %d bytes, compressed; %d fit a page: use ashlar view", f.Name, len(data), MaxBytes)
		}
		p.block(`data-name="`+html.EscapeString(f.Name)+`"`, encode(data))
	}
	p.print("<script>")
	p.write(script)
	p.print("</script>\n" + bottom)
	return p.err
}

// page writes until an error comes.
type page struct {
	w   io.Writer
	err error
}

func (p *page) write(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
}

func (p *page) print(format string, args ...any) { p.write(fmt.Appendf(nil, format, args...)) }

// block writes data that the page's script reads.
func (p *page) block(attribute string, data []byte) {
	p.print(`<script type="text/plain" %s>`, attribute)
	p.write(data)
	p.print("</script>\n")
}

// encode writes bytes as text: ascii85, with v for <, which begins tags.
func encode(b []byte) []byte {
	text := make([]byte, ascii85.MaxEncodedLen(len(b)))
	text = text[:ascii85.Encode(text, b)]
	for i, c := range text {
		if c == '<' {
			text[i] = 'v'
		}
	}
	return text
}

// packed compresses a file that is not compressed.
func packed(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) || bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")) {
		return data, nil
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = z.Write(data); err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}
