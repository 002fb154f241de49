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
		Name: o.Name, Subjects: []string{o.Prefix + ".*"}, Storage: jetstream.FileStorage, MaxAge: o.MaxAge, MaxMsgsPerSubject: o.PerSubject, Replicas: h.replicas(),
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
		return nil, h.cannotOpen("stream "+o.Name, err)
	}
	return s, nil
}

// Append stores a message, and returns its sequence number when it is stored.
// last is the sequence number of the subject's last message, 0 if it has none;
// the error is [ErrMoved] if it is not. So a message is stored once, however
// often a call is repeated.
func (s *Stream) Append(ctx context.Context, subject string, data []byte, last uint64) (seq uint64, err error) {
	if err := s.hub.room(); err != nil {
		return 0, err
	}
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

// Put stores a message in place of what its subject has.
func (s *Stream) Put(ctx context.Context, subject string, data []byte) error {
	m, err := s.Last(ctx, subject)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	_, err = s.Append(ctx, subject, data, m.Seq)
	return err
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

// bulkWait is how long the next message of a bulk may keep the reader waiting.
const bulkWait = 2 * time.Second

// Each calls f with every message whose sequence number is at least from, in
// order, up to the last that is there. It is much faster than [Stream.All].
func (s *Stream) Each(ctx context.Context, from uint64, f func(Message) error) error {
	for stalls := 0; ; {
		next, done, err := s.bulk(ctx, max(from, 1), f)
		switch {
		case done || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case next > from:
			stalls = 0
		default:
			if stalls++; stalls == attempts {
				return errors.Join(err, fmt.Errorf("the stream %s does not go on behind message %d", s.name, from))
			}
		}
		from = next
	}
}

// bulk reads until the end, or until the server stands still. An error of f ends
// it, too.
func (s *Stream) bulk(ctx context.Context, from uint64, f func(Message) error) (next uint64, done bool, err error) {
	var consumer jetstream.Consumer
	err = s.hub.try(ctx, func(ctx context.Context) (err error) {
		consumer, err = s.hub.js.CreateConsumer(ctx, s.name, jetstream.ConsumerConfig{
			AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
			InactiveThreshold: time.Minute, MemoryStorage: true, Replicas: 1,
		})
		return err
	})
	if err != nil {
		return from, false, err
	}
	defer s.hub.js.DeleteConsumer(context.WithoutCancel(ctx), s.name, consumer.CachedInfo().Name) // else the server does, later
	if consumer.CachedInfo().NumPending == 0 {
		return from, true, nil
	}
	// One that is damaged is counted, and never comes.
	state, err := s.State(ctx)
	if err != nil {
		return from, false, err
	}
	for {
		batch, err := consumer.Fetch(1000, jetstream.FetchMaxWait(bulkWait))
		if err != nil {
			return from, false, err
		}
		before := from
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return from, false, err
			}
			if err := f(Message{m.Subject()[len(s.prefix):], meta.Sequence.Stream, meta.Timestamp, m.Data()}); err != nil {
				return from, true, err
			}
			from = meta.Sequence.Stream + 1
			if meta.NumPending == 0 || meta.Sequence.Stream >= state.Last {
				return from, true, nil
			}
		}
		if from == before {
			return from, false, batch.Error()
		}
	}
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
	Leader          string // the server of a cluster that decides; empty in a folder
	Behind          int    // servers of a cluster that do not have everything
}

// State asks how much the stream holds.
func (s *Stream) State(ctx context.Context) (State, error) {
	var st State
	err := s.hub.try(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil {
			st = State{Messages: info.State.Msgs, Bytes: info.State.Bytes, First: info.State.FirstSeq, Last: info.State.LastSeq}
			st.cluster(info.Cluster)
		}
		return err
	})
	return st, err
}

func (st *State) cluster(c *jetstream.ClusterInfo) {
	if c == nil {
		return
	}
	st.Leader = c.Leader
	for _, r := range c.Replicas {
		if !r.Current || r.Offline {
			st.Behind++
		}
	}
}
