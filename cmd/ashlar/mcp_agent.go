package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/mcp"
)

// agent is who asks a command over the Model Context Protocol. It gets the
// document and the text, and may read only what is under its root. A nil agent
// is a user at a terminal, who may read everything.
type agent struct {
	root     *mcp.Root
	progress func(text string)

	document []byte
	text     bytes.Buffer
	refused  *answer.Error
}

// answer keeps what a command has to say.
func (a *agent) answer(doc any, text func(io.Writer) error) (err error) {
	if e, ok := doc.(*answer.Error); ok {
		a.refused = e
		return nil
	}
	if a.document, err = answer.JSON(doc); err != nil {
		return err
	}
	return text(&a.text)
}

// mayRead says why a file may not be read.
func (a *agent) mayRead(path string) error {
	if a == nil {
		return nil
	}
	return a.root.Check(path)
}

// mayReadModel is mayRead for a model and what lies beside it.
func (a *agent) mayReadModel(path string) error {
	if a == nil {
		return nil
	}
	return a.root.CheckModel(path)
}

// ask runs a command for an agent.
func ask(ctx context.Context, root *mcp.Root, args []string, progress func(string)) (*mcp.Answer, error) {
	a := &agent{root: root, progress: progress}
	var said bytes.Buffer // warnings
	execute(ctx, stdio{in: strings.NewReader(""), out: io.Discard, err: &said, agent: a}, args)
	switch {
	case a.refused != nil:
		return nil, errors.New(a.refused.Error)
	case a.document == nil:
		return nil, errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "ashlar: "))
	}
	return &mcp.Answer{Document: a.document, Text: said.String() + a.text.String()}, nil
}
