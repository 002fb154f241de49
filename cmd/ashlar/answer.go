package main

import (
	"bufio"
	"errors"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer"
)

// printAnswer writes an answer as JSON or as text.
func printAnswer(std stdio, asJSON bool, doc any, text func(io.Writer) error) error {
	if std.agent != nil {
		return std.agent.answer(doc, text)
	}
	out := bufio.NewWriter(std.out)
	var err error
	if asJSON {
		err = answer.WriteJSON(out, doc)
	} else {
		err = text(out)
	}
	return written(errors.Join(err, out.Flush()))
}
