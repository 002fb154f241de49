package view

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/ashlar-mem/ashlar/internal/input"
)

// LocalMaxBytes is the size of the largest file that a local server takes: it has
// 4 GiB of memory at most, and what a file becomes is larger than the file.
const LocalMaxBytes = 1 << 30

// File is a file that is in memory.
type File struct {
	Name string
	Data []byte
}

// NewLocal makes a server that does not listen: whoever made it hands it the
// requests, for paths such as /api/runs. It reads the files in the background, and
// everything ends with the context. One core is enough for it: documents are made
// when they are asked for.
func NewLocal(ctx context.Context, files ...File) *Server {
	o := Options{MaxBytes: LocalMaxBytes}
	in := map[string][]byte{}
	for _, f := range files {
		o.Files = append(o.Files, f.Name)
		in[f.Name] = f.Data
	}
	s := newServer(o)
	s.open = func(ctx context.Context, name string, _ func(read, total int64)) (*input.Input, error) {
		return mustBeSnapshot(readDropped(ctx, name, bytes.NewReader(in[name]), int64(len(in[name]))))
	}
	s.load(ctx)
	return s
}

// Bundle reads a file of the page, such as assets/app.js.
func Bundle(name string) ([]byte, error) {
	data, err := fs.ReadFile(dist, "dist/"+name)
	if err != nil {
		return nil, fmt.Errorf("the page of ashlar view: %w: run make web", err)
	}
	return data, nil
}
