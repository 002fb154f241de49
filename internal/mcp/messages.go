package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxMessage is how long a message may be.
const maxMessage = 16 << 20

// The codes of JSON-RPC for what is no request.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// messages stands between a client and the library: lines that are no message are answered
// and left out, as each of them would end the connection, and the end of the input waits for the answers that are under way.
type messages struct {
	ctx context.Context
	in  *bufio.Reader
	out io.Writer

	rest []byte // of the line that is passed on

	writing sync.Mutex // for a message: who reads must not wait for a client that does not

	mu      sync.Mutex
	pending map[string]bool // requests without an answer, by id
	changed chan struct{}   // is closed at the next answer
}

func newMessages(ctx context.Context, in io.Reader, out io.Writer) *messages {
	return &messages{ctx: ctx, in: bufio.NewReaderSize(in, 64<<10), out: out, pending: map[string]bool{}, changed: make(chan struct{})}
}

// Close leaves both ends open, which are the caller's.
func (m *messages) Close() error { return nil }

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		var wrong *problem
		if err == nil {
			wrong = m.check(line)
		} else if !errors.As(err, &wrong) {
			m.wait()
			return 0, err
		}
		if wrong != nil {
			if err := m.refuse(wrong); err != nil {
				return 0, err
			}
			continue
		}
		m.rest = append(line, '\n')
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// problem is why a line is no message.
type problem struct {
	code int
	text string
}

func (p *problem) Error() string { return p.text }

func invalid(format string, args ...any) *problem {
	return &problem{codeInvalid, fmt.Sprintf(format, args...)}
}

// line returns the next one that is not empty, also the last one without an end.
func (m *messages) line() ([]byte, error) {
	for {
		var line []byte
		long := false
		for {
			part, err := m.in.ReadSlice('\n')
			if long = long || len(line)+len(part) > maxMessage; !long {
				line = append(line, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long) {
				return nil, err
			}
			break
		}
		if long {
			return nil, invalid("a message has more than %d MiB", maxMessage>>20)
		}
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))); len(line) > 0 {
			return line, nil
		}
	}
}

// check returns why the library could not read a line, and notes requests.
func (m *messages) check(line []byte) *problem {
	if !json.Valid(line) {
		return &problem{codeParse, "the line is not JSON; send one message a line"}
	}
	switch {
	case line[0] == '[':
		return invalid("batches are not taken; send one message a line")
	case line[0] != '{':
		return invalid("a message is a JSON object")
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	_, err := jsonrpc.DecodeMessage(line)
	if err = cmp.Or(err, json.Unmarshal(line, &message)); err != nil {
		return invalid("the line is no message of JSON-RPC 2.0: %v", err)
	}
	if message.Method == nil {
		return nil // an answer
	}
	id, ok := idOf(message.ID)
	if !ok && message.ID != nil {
		return invalid("an id is a text, or a whole number up to 2^53")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case *message.Method == "notifications/cancelled":
		var of struct {
			Params struct {
				ID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		_ = json.Unmarshal(line, &of) // the library says what is wrong
		m.answered(of.Params.ID)
	case !ok: // a notification
	case m.pending[id]:
		return invalid("a request with the id %.40s waits for its answer", message.ID)
	default:
		m.pending[id] = true
	}
	return nil
}

// idOf returns an id in one form: the library may write it in another one than the client. It is a text, or a whole number that
// all programs read alike.
func idOf(raw json.RawMessage) (id string, ok bool) {
	if json.Unmarshal(raw, &id) == nil && len(raw) > 0 && raw[0] == '"' {
		return "text " + id, true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return strconv.FormatInt(n, 10), err == nil && n >= -1<<53 && n <= 1<<53
}

// answered notes that a request has its answer. The lock is held.
func (m *messages) answered(raw json.RawMessage) {
	if id, ok := idOf(raw); ok && m.pending[id] {
		delete(m.pending, id)
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// wait returns when all requests have their answers.
func (m *messages) wait() {
	for {
		m.mu.Lock()
		some, changed := len(m.pending) > 0, m.changed
		m.mu.Unlock()
		if !some {
			return
		}
		select {
		case <-changed:
		case <-m.ctx.Done():
			return
		}
	}
}

// refuse answers a line that is no message. Nobody knows which one it is, so that the answer has no id.
func (m *messages) refuse(p *problem) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": p.code, "message": p.text}})
	if err != nil {
		return err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	_, err = m.out.Write(append(text, '\n'))
	return err
}

// Write passes a message on, which the library writes as a whole.
func (m *messages) Write(p []byte) (int, error) {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
	}
	err := json.Unmarshal(p, &message)
	m.writing.Lock()
	n, failed := m.out.Write(p)
	m.writing.Unlock()
	if err == nil && message.Method == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.answered(message.ID)
	}
	return n, failed
}
