package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Subject is what a document is about.
type Subject struct {
	// Warning is what is to be said before everything else; empty if nothing is.
	Warning      string  `json:"warning"`
	File         string  `json:"file"`
	Device       int     `json:"device"`
	DeviceReason *string `json:"device_reason"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
}

// NewSubject names a device of a file; why it is that one may be empty.
func NewSubject(f *snapshot.File, t *trace.Trace, why string) Subject {
	return Subject{Warning: replay.NotModelled(t), File: f.Name, Device: t.Device, DeviceReason: Known(why), Contradictions: Contradictions(f)}
}

// Contradictions returns those of a file, for a document; of no file there are
// none.
func Contradictions(f *snapshot.File) []string {
	if f == nil || f.Contradictions == nil {
		return []string{}
	}
	return f.Contradictions
}

// Known returns a text of a document, where null stands for one that is empty.
func Known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Schema is the version of all documents, which each has in its field "schema".
// It goes up when a field goes or changes its meaning, not when one is added.
const Schema = 1

// Error is the document of a command that could not answer.
type Error struct {
	Error string  `json:"error"` // in one line, as on standard error
	What  string  `json:"what"`  // is wrong
	Where *string `json:"where"` // the file or the flag; null if it is none of them
	Hint  *string `json:"hint"`  // what to do; null if the error says nothing about that
}

// WriteJSON writes a document, which is an object, with its schema.
func WriteJSON(w io.Writer, document any) error {
	out, err := JSON(document)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// JSON returns a document as WriteJSON writes it.
func JSON(document any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return nil, err
	}
	fields, object := bytes.CutPrefix(out.Bytes(), []byte("{"))
	if !object {
		return nil, fmt.Errorf("a document must be an object, not %T", document)
	}
	head := fmt.Sprintf("{\n  \"schema\": %d,", Schema)
	if fields[0] == '}' {
		head = strings.TrimSuffix(head, ",") + "\n"
	}
	return EscapeJSON(append([]byte(head), fields...)), nil
}

// EscapeJSON escapes the characters of a JSON text that a terminal would obey or
// that reverse the direction of writing. JSON leaves them as they are.
func EscapeJSON(text []byte) []byte {
	odd := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	if bytes.IndexFunc(text, odd) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/16)
	for _, r := range string(text) {
		if !odd(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, "\\u%04x", high)
			r = low
		}
		out = fmt.Appendf(out, "\\u%04x", r)
	}
	return out
}
