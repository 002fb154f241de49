package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// talk sends lines, and then the end, and returns what comes back.
func talk(t *testing.T, call func(context.Context) (*Answer, error), lines ...string) []string {
	t.Helper()
	s := Server{Name: "test", Version: "1", Tools: []Tool{{
		Name: "count", Description: "counts", Documents: []reflect.Type{reflect.TypeFor[counted]()},
		Arguments: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}},
		Call:      func(ctx context.Context, _ map[string]any, _ func(string)) (*Answer, error) { return call(ctx) },
	}}}
	var out bytes.Buffer
	if err := s.Run(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Errorf("it ended with %v", err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

const (
	hello = `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` +
		"\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
)

// TestNoMessage: a line that is no message is answered, and the next one is read.
func TestNoMessage(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	long := strings.Repeat("x", maxMessage)
	for _, x := range []struct{ line, want string }{
		{"garbage", "not JSON"},
		{`{"jsonrpc":"2.0",`, "not JSON"},
		{ping + ping, "not JSON"},
		{"\x00", "not JSON"},
		{"[]", "batches"},
		{"[" + ping + "]", "batches"},
		{"null", "object"},
		{"12", "object"},
		{`"x"`, "object"},
		{`{"JSONRPC":"2.0","id":1,"method":"ping"}`, "2.0"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + deep + "}", "nesting depth"},
		{`{"id":1}`, "2.0"},
		{`{"jsonrpc":2}`, "2.0"},
		{`{"jsonrpc":"2.0","id":1,"method":2}`, "JSON-RPC 2.0"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "2^53"},
		{`{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}`, "2^53"},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "2^53"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "JSON-RPC 2.0"},
		{`{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`, "more than 16 MiB"},
	} {
		line, want := x.line, x.want
		got := talk(t, nil, hello, line, "", ping+"\r")
		if len(got) != 3 {
			t.Errorf("%.60q: %.200q", line, got)
			continue
		}
		refused, answered := false, false
		for _, l := range got {
			var m struct {
				ID     any
				Result any
				Error  *struct{ Message string }
			}
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Errorf("%.60q: %v: %.200s", line, err, l)
			}
			refused = refused || m.ID == nil && m.Error != nil && strings.Contains(m.Error.Message, want)
			answered = answered || m.ID == 7.0 && m.Result != nil
		}
		if !refused || !answered {
			t.Errorf("%.60q: want %q and an answer: %.300q", line, want, got)
		}
	}
}

// TestEndWaits: what was asked before the end is answered, whatever its id looks like, unless it was cancelled.
func TestEndWaits(t *testing.T) {
	slow := func(ctx context.Context) (*Answer, error) {
		for range 100 {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		return &Answer{[]byte(`{"rows":[],"by":{}}`), "done"}, nil
	}
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"count","arguments":{}}}`
	}
	if got := talk(t, slow, hello, call("1"), call("-0"), call(`"\u0061b"`), call(`"1"`)); len(got) != 5 {
		t.Errorf("%q", got)
	}
	stuck := func(ctx context.Context) (*Answer, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	got := talk(t, stuck, hello, call("1"), call("1"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if len(got) < 2 || !strings.Contains(strings.Join(got, ""), "waits for its answer") {
		t.Errorf("%q", got)
	}
}

// TestLastLine: the last line may have no end, and the end of the input is one.
func TestLastLine(t *testing.T) {
	m := newMessages(t.Context(), strings.NewReader("\n\ufeff"+ping), io.Discard)
	got := make([]byte, 100)
	n, err := m.Read(got)
	if string(got[:n]) != ping+"\n" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
	m.Write([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`))
	if n, err := m.Read(got); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
