package snapshot

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
)

// pageHead is how far into a page its snapshot may begin. PyTorch's own pages have
// some hundred bytes before it; a browser that saved one may have added to them.
const pageHead = 1 << 20

// pageKey stands before the snapshot in a page: JSON with its name and, in base64,
// its pickle.
var pageKey = []byte(`"base64":`)

// isPage reports whether a file begins as an HTML page does.
func isPage(head []byte) bool {
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	return bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html"))
}

// unwrapPage returns the snapshot in a page that PyTorch's viewer wrote:
// torch/cuda/_memory_viz.py, with trace_plot, segment_plot or profile_plot.
func unwrapPage(name string, r *bufio.Reader) (*bufio.Reader, error) {
	none := &FormatError{Name: name, Seems: "an HTML page without a snapshot in it (PyTorch's memory viewer puts one there from 2.1 on)"}
	tail := make([]byte, 0, 2*len(pageKey))
	for range pageHead {
		c, err := r.ReadByte()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, none
		case err != nil:
			return nil, err
		case c == '"' && bytes.HasSuffix(tail, pageKey):
			return bufio.NewReaderSize(base64.NewDecoder(base64.StdEncoding, &quoted{r: r}), 64<<10), nil
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			continue
		case len(tail) == cap(tail):
			tail = append(tail[:0], tail[len(tail)-len(pageKey):]...)
		}
		tail = append(tail, c)
	}
	return nil, none
}

// quoted reads up to a quote. What ends before it is cut off.
type quoted struct {
	r    *bufio.Reader
	done bool
}

func (q *quoted) Read(p []byte) (int, error) {
	if q.done {
		return 0, io.EOF
	}
	n, err := q.r.Read(p)
	if i := bytes.IndexByte(p[:n], '"'); i >= 0 {
		q.done = true
		return i, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
