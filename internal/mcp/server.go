package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// Tool is a question that an agent can ask.
type Tool struct {
	Name, Title, Description string

	Arguments *jsonschema.Schema // an object
	Documents []reflect.Type     // it answers with one of them

	// Call answers. Arguments are as encoding/json decodes them, with numbers
	// as they were written. Progress may be told what is done.
	Call func(ctx context.Context, arguments map[string]any, progress func(text string)) (*Answer, error)
}

// Answer is what a tool says.
type Answer struct {
	Document []byte // JSON, an object
	Text     string // the same for people
}

// Server is what an agent is connected with.
type Server struct {
	Name, Title, Version, Instructions string

	Tools []Tool
}

// maxItems is the argument that all tools have.
const maxItems = "max_items"

// Run answers the messages that come in, one tool at a time, until there are no
// more and all have their answers, or the context ends.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	server := mcp.NewServer(&mcp.Implementation{Name: s.Name, Title: s.Title, Version: s.Version}, &mcp.ServerOptions{
		Instructions: s.Instructions,
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	turn := make(chan struct{}, 1) // a large snapshot takes all cores, and memory for one
	for _, t := range s.Tools {
		described, err := t.describe()
		if err != nil {
			return err
		}
		server.AddTool(described, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			defer func() { <-turn }()
			return t.call(ctx, req)
		})
	}
	m := newMessages(ctx, in, out)
	err := server.Run(ctx, &mcp.IOTransport{Reader: m, Writer: m})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // as it should end
	}
	return err
}

func (t *Tool) describe() (*mcp.Tool, error) {
	output, err := outputSchema(t.Documents)
	if err != nil {
		return nil, err
	}
	least, most := float64(leastItems), float64(mostItems)
	t.Arguments.Properties[maxItems] = &jsonschema.Schema{
		Type: "integer", Minimum: &least, Maximum: &most,
		Description: fmt.Sprintf("how many entries of each list the document has; by default %d", defaultItems),
	}
	closed := false
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Arguments, OutputSchema: output,
		Annotations: &mcp.ToolAnnotations{Title: t.Title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed, DestructiveHint: &closed},
	}, nil
}

// call answers one question. What is wrong with it is an answer, too, which the
// agent can learn from.
func (t *Tool) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result, err := t.answer(ctx, req)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
	}
	return result, nil
}

func (t *Tool) answer(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	arguments, err := t.arguments(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	items, err := number(arguments[maxItems])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", maxItems, err)
	}
	limits, err := limitsOf(items)
	if err != nil {
		return nil, err
	}
	delete(arguments, maxItems)
	a, err := t.Call(ctx, arguments, progress(ctx, req))
	if err != nil {
		return nil, err
	}
	document, cuts, err := limits.shorten(a.Document)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: limits.shortenText(a.Text) + cutText(cuts)}},
		StructuredContent: json.RawMessage(document),
	}, nil
}

// arguments reads the arguments and refuses those that the tool does not have.
func (t *Tool) arguments(raw json.RawMessage) (map[string]any, error) {
	arguments := map[string]any{}
	if len(raw) > 0 {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&arguments); err != nil {
			return nil, fmt.Errorf("the arguments are not an object: %w", err)
		}
	}
	var names []string
	for name := range t.Arguments.Properties {
		names = append(names, name)
	}
	for name := range arguments {
		if t.Arguments.Properties[name] == nil {
			return nil, fmt.Errorf("%s has no argument %q%s", t.Name, name, spelling.DidYouMean(name, names))
		}
	}
	for _, name := range t.Arguments.Required {
		if arguments[name] == nil {
			return nil, fmt.Errorf("%s needs the argument %s", t.Name, name)
		}
	}
	return arguments, nil
}

func number(v any) (int, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case json.Number:
		if n, err := v.Int64(); err == nil && n > 0 {
			return int(n), nil
		}
	}
	return 0, errors.New("write a whole number above 0")
}

// progressInterval is how often a client hears of progress.
const progressInterval = 200 * time.Millisecond

// progress returns what tells the client how far a call is, if it wants to know.
// The units change with the work, so the number only says that there is progress.
func progress(ctx context.Context, req *mcp.CallToolRequest) func(string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var mu sync.Mutex // work goes on on all cores
	said := 0.0
	next := time.Now().Add(progressInterval)
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().Before(next) {
			return
		}
		said++
		next = time.Now().Add(progressInterval)
		// A client that does not listen any more shows in the answer, too.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: said, Message: strings.TrimSpace(text)})
	}
}
