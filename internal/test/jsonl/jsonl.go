package jsonl

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// Must reads a file and ends the test if it cannot.
func Must[T any](t testing.TB, path string) []T {
	t.Helper()
	all, err := Read[T](path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Read decodes each line of a file. A file without lines is an error.
func Read[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := decode[T](f, strings.HasSuffix(path, ".gz"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

func decode[T any](r io.Reader, packed bool) ([]T, error) {
	if packed {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	}
	var all []T
	in := bufio.NewScanner(r)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var x T
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		all = append(all, x)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", len(all), err)
	}
	if len(all) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return all, nil
}
