package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type counted struct {
	Rows  []int          `json:"rows"`
	Maybe *string        `json:"maybe,omitempty"`
	By    map[string]int `json:"by"`
}

// connect starts a server with one tool, and a client.
func connect(t *testing.T, call func(context.Context, map[string]any, func(string)) (*Answer, error), o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	asked, ask := io.Pipe()
	answered, answer := io.Pipe()
	s := Server{Name: "test", Version: "1", Tools: []Tool{{
		Name: "count", Description: "counts", Documents: []reflect.Type{reflect.TypeFor[counted]()}, Call: call,
		Arguments: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"to": {Type: "integer"}}, Required: []string{"to"}},
	}}}
	ended := make(chan error)
	go func() {
		ended <- s.Run(context.Background(), asked, answer)
		answer.Close()
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o).Connect(t.Context(), &mcp.IOTransport{Reader: answered, Writer: ask}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return c
}

func TestCall(t *testing.T) {
	c := connect(t, func(_ context.Context, arguments map[string]any, _ func(string)) (*Answer, error) {
		n, err := arguments["to"].(json.Number).Int64()
		if n < 0 {
			err = errors.New("no way")
		}
		document, _ := json.Marshal(counted{Rows: make([]int, max(0, n))}) // it has nothing that cannot be written
		return &Answer{document, "counted\n"}, err
	}, nil)
	for _, test := range []struct {
		arguments any
		want      string
		refused   bool
	}{
		{map[string]any{"to": 3}, "counted\n", false},
		{map[string]any{"to": 30}, "rows: 20 of 30", false},
		{map[string]any{"to": 30, "max_items": 25}, "rows: 25 of 30", false},
		{map[string]any{"to": -1}, "no way", true},
		{map[string]any{"tos": 3}, `no argument "tos"`, true},
		{map[string]any{}, "needs the argument to", true},
		{map[string]any{"to": 3, "max_items": "many"}, "whole number", true},
		{map[string]any{"to": 3, "max_items": 20_000}, "from 5 to 10000", true},
	} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "count", Arguments: test.arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Content[0].(*mcp.TextContent).Text; r.IsError != test.refused || !strings.Contains(text, test.want) {
			t.Errorf("%v: an error is %v, %q, want %q", test.arguments, r.IsError, text, test.want)
		}
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("there is a tool that there is not")
	}
}

// A client that asks for progress hears of it, in rising numbers.
func TestProgress(t *testing.T) {
	const told = 3
	heard := make(chan *mcp.ProgressNotificationParams, told)
	enough := make(chan struct{})
	c := connect(t, func(ctx context.Context, _ map[string]any, progress func(string)) (*Answer, error) {
		for n := 0; ; n++ {
			select {
			case <-enough:
				return &Answer{[]byte(`{"rows":[],"by":{}}`), "done"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			default:
				progress(fmt.Sprintf("%d done", n))
				time.Sleep(progressInterval / 10)
			}
		}
	}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		select {
		case heard <- r.Params:
		default:
		}
	}})
	p := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"to": 1}}
	p.SetProgressToken("mine")
	ended := make(chan error)
	go func() {
		_, err := c.CallTool(t.Context(), p)
		ended <- err
	}()
	last := 0.0
	for range told {
		got := <-heard
		if got.Progress <= last || got.ProgressToken != "mine" || !strings.HasSuffix(got.Message, " done") {
			t.Errorf("progress after %v: %+v", last, got)
		}
		last = got.Progress
	}
	close(enough)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A question that is cancelled ends, and leaves the turn to the next one.
func TestCancel(t *testing.T) {
	working := make(chan struct{})
	c := connect(t, func(ctx context.Context, arguments map[string]any, _ func(string)) (*Answer, error) {
		if arguments["to"] == json.Number("0") {
			close(working)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &Answer{[]byte(`{"rows":[],"by":{}}`), "done"}, nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"to": 0}})
		ended <- err
	}()
	<-working
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call ended with %v", err)
	}
	if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"to": 1}}); err != nil || r.IsError {
		t.Errorf("after a cancelled call: %+v, %v", r, err)
	}
}

func TestSchema(t *testing.T) {
	s, err := outputSchema([]reflect.Type{reflect.TypeFor[counted]()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for document, valid := range map[string]bool{
		`{"schema": 1, "rows": [1, 2], "by": {"a": 1}}`:                                          true,
		`{"schema": 1, "rows": null, "by": null, "maybe": "yes"}`:                                true,
		`{"schema": 1, "rows": [1], "by": {}, "cut": [{"list": "rows", "shown": 1, "of": 300}]}`: true,
		`{"rows": [1], "by": {}}`:                                                                false,
		`{"schema": 1, "by": {}}`:                                                                false,
		`{"schema": 1, "rows": ["1"], "by": {}}`:                                                 false,
		`{"schema": 1, "rows": [1], "by": {"a": "b"}}`:                                           false,
		`{"schema": 1, "rows": [1], "by": {}, "more": 1}`:                                        false,
		`{"schema": 1, "rows": [1], "by": {}, "cut": [{"x":1}]}`:                                 false,
	} {
		var v any
		if err := json.Unmarshal([]byte(document), &v); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(v); (err == nil) != valid {
			t.Errorf("%s: %v", document, err)
		}
	}
	if _, err := outputSchema([]reflect.Type{reflect.TypeFor[struct{ C chan int }]()}); err == nil {
		t.Error("a channel has a schema")
	}
}
