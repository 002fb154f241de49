package run

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

// tailSize is how much of what a command prints is kept.
const tailSize = 8 << 10

// output reads what a command prints, keeps the end of it and watches for
// texts.
type output struct {
	file *os.File
	done chan struct{} // closed when there is no more to read

	mu      sync.Mutex
	tail    []byte
	watched []*watch
}

// watch waits for a text.
type watch struct {
	text  []byte
	carry []byte // the end of what was seen: a text may come in pieces
	seen  chan struct{}
}

// newOutput begins to read; the writer is for the command.
func newOutput(texts ...string) (o *output, seen []<-chan struct{}, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	o = &output{file: r, done: make(chan struct{})}
	for _, t := range texts {
		if t == "" {
			seen = append(seen, nil)
			continue
		}
		x := &watch{text: []byte(t), seen: make(chan struct{})}
		o.watched = append(o.watched, x)
		seen = append(seen, x.seen)
	}
	go o.read()
	return o, seen, w, nil
}

func (o *output) read() {
	defer close(o.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := o.file.Read(buf)
		o.take(buf[:n])
		if err != nil {
			return
		}
	}
}

func (o *output) take(chunk []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, chunk...)
	if n := len(o.tail) - tailSize; n > 0 {
		o.tail = append(o.tail[:0], o.tail[n:]...)
	}
	for _, w := range o.watched {
		w.take(chunk)
	}
}

func (w *watch) take(chunk []byte) {
	if w.text == nil {
		return
	}
	w.carry = append(w.carry, chunk...)
	if bytes.Contains(w.carry, w.text) {
		close(w.seen)
		w.text, w.carry = nil, nil
		return
	}
	if n := len(w.carry) - len(w.text) + 1; n > 0 {
		w.carry = append(w.carry[:0], w.carry[n:]...)
	}
}

// close stops reading. What the command has printed is read; whoever still
// holds its output, having left the group, is not waited for.
func (o *output) close() {
	o.file.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	<-o.done
	o.file.Close()
}

// lastLine is the last line that says something.
func (o *output) lastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(string(o.tail), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(strings.ToValidUTF8(lines[i], "?")); s != "" {
			return s
		}
	}
	return ""
}
