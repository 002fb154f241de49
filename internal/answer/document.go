package answer

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Subject is what a document is about.
type Subject struct {
	File         string  `json:"file"`
	Device       int     `json:"device"`
	DeviceReason *string `json:"device_reason"`
}

// NewSubject names a device of a file; why it is that one may be empty.
func NewSubject(f *snapshot.File, t *trace.Trace, why string) Subject {
	return Subject{File: f.Name, Device: t.Device, DeviceReason: Known(why)}
}

// Known returns a text of a document, where null stands for one that is empty.
func Known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// WriteJSON writes a document.
func WriteJSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}

// JSON returns a document as WriteJSON writes it.
func JSON(document any) ([]byte, error) {
	var out bytes.Buffer
	err := WriteJSON(&out, document)
	return out.Bytes(), err
}
