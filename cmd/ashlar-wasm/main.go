//go:build js

package main

import (
	"bytes"
	"context"
	"io"
	"runtime/debug"
	"syscall/js"
	"time"

	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// gcPercent trades memory for time: there is one thread, and memory that a page
// has had it keeps anyway.
const gcPercent = 400

func main() {
	debug.SetGCPercent(gcPercent)
	page := js.Global().Get("ashlar")
	var files []view.File
	given := page.Get("files")
	for i := range given.Length() {
		f := given.Index(i)
		files = append(files, view.File{Name: f.Get("name").String(), Data: bytesOf(f.Get("data"))})
	}
	b := &bridge{page: page, server: view.NewLocal(context.Background(), files...), open: map[int]context.CancelFunc{}}
	page.Set("ask", js.FuncOf(b.ask))
	page.Set("cancel", js.FuncOf(b.cancel))
	page.Call("ready")
	select {}
}

// bridge hands the questions of the page to the server. All of it runs on one
// thread.
type bridge struct {
	page   js.Value
	server *view.Server
	open   map[int]context.CancelFunc // questions that have no answer yet
}

// ask is ask(number, method, path, type, body), where type and body may be empty.
func (b *bridge) ask(_ js.Value, args []js.Value) any {
	id := args[0].Int()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, args[1].String(), args[2].String(), nil)
	if err != nil { // the page writes no such address
		panic(err)
	}
	if kind := args[3].String(); kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if body := args[4]; body.Truthy() {
		r.ContentLength = int64(body.Length())
		r.Body = io.NopCloser(bytes.NewReader(nil))
		if r.ContentLength <= view.LocalMaxBytes { // else the server refuses it by its length
			r.Body = io.NopCloser(bytes.NewReader(bytesOf(body)))
		}
	}
	b.open[id] = cancel
	go func() {
		b.server.ServeHTTP(&answer{bridge: b, id: id, header: http.Header{}}, r)
		cancel()
		delete(b.open, id)
		b.page.Call("end", id)
	}()
	return nil
}

// cancel is cancel(number). The answer still ends.
func (b *bridge) cancel(_ js.Value, args []js.Value) any {
	if stop := b.open[args[0].Int()]; stop != nil {
		stop()
	}
	return nil
}

// answer is the answer to one question.
type answer struct {
	*bridge
	id     int
	header http.Header
	headed bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.headed {
		a.headed = true
		a.page.Call("head", a.id, status, a.header.Get("Content-Type"))
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	chunk := js.Global().Get("Uint8Array").New(len(p))
	js.CopyBytesToJS(chunk, p)
	a.page.Call("chunk", a.id, chunk)
	return len(p), nil
}

// Flush lets messages of the page in, such as that nobody wants the answer any
// more: while Go computes, none arrives.
func (a *answer) Flush() { time.Sleep(time.Millisecond) }

func bytesOf(array js.Value) []byte {
	b := make([]byte, array.Length())
	js.CopyBytesToGo(b, array)
	return b
}
