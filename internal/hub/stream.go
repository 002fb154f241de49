package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamOptions describe a stream: the messages under one subject and what
// follows it.
type StreamOptions struct {
	Name   string // of letters, digits, - and _
	Prefix string // of the subjects: "a.b" for a.b.ONE, a.b.TWO
	// MaxAge is after how long a message goes; 0: never.
	MaxAge time.Duration
	// PerSubject is how many messages of one subject stay; 0: all.
	PerSubject int64
}

// Stream is messages in order, each under a subject, which is one word.
type Stream struct {
	hub    *Hub
	prefix string
	name   string
	direct bool // several messages may be asked for at once
	stream jetstream.Stream
}

// Message is one message of a stream.
type Message struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Data    []byte
}

// Stream opens a stream, and makes it if it is not there. That of a cluster which
// is there stays as it is.
func (h *Hub) Stream(ctx context.Context, o StreamOptions) (*Stream, error) {
	s := &Stream{hub: h, prefix: o.Prefix + ".", name: o.Name, direct: h.Local()}
	config := jetstream.StreamConfig{
		Name: o.Name, Subjects: []string{o.Prefix + ".*"}, Storage: jetstream.FileStorage, MaxAge: o.MaxAge, MaxMsgsPerSubject: o.PerSubject,
		// Those who follow a leader may answer with what has gone.
		AllowDirect: s.direct,
	}
	err := h.try(ctx, func(ctx context.Context) (err error) {
		if h.Owner() {
			s.stream, err = h.js.CreateOrUpdateStream(ctx, config)
			return err
		}
		if s.stream, err = h.js.Stream(ctx, o.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
			s.stream, err = h.js.CreateStream(ctx, config)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stream %s cannot be opened: %w", o.Name, err)
	}
	return s, nil
}

// Append stores a message, and returns its sequence number when it is stored.
// last is the sequence number of the subject's last message, 0 if it has none;
// the error is [ErrMoved] if it is not. So a message is stored once, however
// often a call is repeated.
func (s *Stream) Append(ctx context.Context, subject string, data []byte, last uint64) (seq uint64, err error) {
	tries := 0
	err = s.hub.try(ctx, func(ctx context.Context) error {
		tries++
		ack, err := s.hub.js.Publish(ctx, s.prefix+subject, data,
			jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithExpectStream(s.name), jetstream.WithRetryAttempts(0))
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence && api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
		return seq, err
	}
	if tries > 1 { // the first try may have been stored, and only its answer lost
		if m, err := s.Last(ctx, subject); err == nil && m.Seq > last && bytes.Equal(m.Data, data) {
			return m.Seq, nil
		}
	}
	return 0, ErrMoved
}

// Last returns the last message of a subject, or [ErrNone].
func (s *Stream) Last(ctx context.Context, subject string) (Message, error) {
	return s.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.stream.GetLastMsgForSubject(ctx, s.prefix+subject)
	})
}

// From returns the first message of a subject whose sequence number is at least
// seq, or [ErrNone].
func (s *Stream) From(ctx context.Context, subject string, seq uint64) (Message, error) {
	return s.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.stream.GetMsg(ctx, max(seq, 1), jetstream.WithGetMsgSubject(s.prefix+subject))
	})
}

// All returns the messages of a subject in order, for "range"; the error is that
// of the store.
func (s *Stream) All(ctx context.Context, subject string) func(yield func(Message, error) bool) {
	return s.AllFrom(ctx, subject, 0)
}

func (s *Stream) get(ctx context.Context, f func(context.Context) (*jetstream.RawStreamMsg, error)) (Message, error) {
	var m Message
	err := s.hub.try(ctx, func(ctx context.Context) error {
		raw, err := f(ctx)
		if err == nil {
			m = Message{raw.Subject[len(s.prefix):], raw.Sequence, raw.Time, raw.Data}
		}
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = ErrNone
	}
	return m, err
}

// Subjects lists the subjects that have messages.
func (s *Stream) Subjects(ctx context.Context) ([]string, error) {
	var all []string
	err := s.hub.try(ctx, func(ctx context.Context) error {
		all = all[:0]
		info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(s.prefix+"*"))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			all = append(all, subject[len(s.prefix):])
		}
		return nil
	})
	slices.Sort(all)
	return all, err
}

// Purge removes a subject's messages with sequence numbers below the given one;
// those of all subjects if subject is empty.
func (s *Stream) Purge(ctx context.Context, subject string, below uint64) error {
	options := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSequence(below)}
	if subject != "" {
		options = append(options, jetstream.WithPurgeSubject(s.prefix+subject))
	}
	return s.hub.try(ctx, func(ctx context.Context) error { return s.stream.Purge(ctx, options...) })
}

// State is how much a stream holds.
type State struct {
	Messages, Bytes uint64
	First, Last     uint64 // sequence numbers
}

// State asks how much the stream holds.
func (s *Stream) State(ctx context.Context) (State, error) {
	var st State
	err := s.hub.try(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil {
			st = State{info.State.Msgs, info.State.Bytes, info.State.FirstSeq, info.State.LastSeq}
		}
		return err
	})
	return st, err
}
