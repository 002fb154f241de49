package stats

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Document is what ashlar stats --json prints.
type Document struct {
	// Warning is what is to be said before everything else; empty if nothing is.
	Warning  string     `json:"warning"`
	File     string     `json:"file"`
	Kind     input.Kind `json:"kind"`
	Snapshot *Snapshot  `json:"snapshot"`
	Dumps    []*Dump    `json:"memory_stats"`
	Messages []*Message `json:"oom_messages"`
}

// NewDocument collects the facts of an input. What is known of the file beside
// its content is taken from the input.
func NewDocument(ctx context.Context, in *input.Input, o Options) (*Document, error) {
	if in.Kind == input.LibraryError {
		return nil, fmt.Errorf("%s is %s, without statistics: ashlar explain explains it", in.Name, in.Kind.Words())
	}
	d := &Document{File: in.Name, Kind: in.Kind, Dumps: []*Dump{}, Messages: []*Message{}}
	if in.Snapshot != nil {
		o.FileBytes, o.Writer = in.Bytes, in.Writer
		if t, _, err := input.Pick(in.Snapshot, o.Device); err == nil {
			d.Warning = replay.NotModelled(t)
		}
		var err error
		if d.Snapshot, err = NewSnapshot(ctx, in.Snapshot, o); err != nil {
			return nil, err
		}
	}
	for _, dump := range in.Dumps {
		if o.Device.Covers(dump.Device) {
			d.Dumps = append(d.Dumps, NewDump(dump))
		}
	}
	for _, m := range in.Messages {
		if o.Device.Covers(m.Device) {
			d.Messages = append(d.Messages, NewMessage(m))
			if d.Warning == "" {
				d.Warning = answer.MessageWarning(m)
			}
		}
	}
	if d.Snapshot == nil && len(d.Dumps)+len(d.Messages) == 0 {
		return nil, &input.OtherDeviceError{Name: in.Name, Device: o.Device.Number}
	}
	return d, nil
}
