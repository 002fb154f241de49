package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// How many messages are asked for at once: the first alone, since many look no
// further.
const (
	firstBatch = 32
	mostBatch  = 500
)

// AllFrom returns the messages of a subject whose sequence number is at least seq,
// in order, for "range"; the error is that of the store.
func (s *Stream) AllFrom(ctx context.Context, subject string, seq uint64) func(yield func(Message, error) bool) {
	return func(yield func(Message, error) bool) {
		m, err := s.From(ctx, subject, seq)
		if errors.Is(err, ErrNone) || !yield(m, err) || err != nil {
			return
		}
		for n := firstBatch; ; n = mostBatch {
			list, err := s.next(ctx, subject, m.Seq+1, n)
			for _, m = range list {
				if !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(Message{}, err)
				return
			}
			if len(list) == 0 {
				return
			}
		}
	}
}

// next returns some messages of a subject from a sequence number on; none if there
// are no more.
func (s *Stream) next(ctx context.Context, subject string, from uint64, n int) (list []Message, err error) {
	if !s.direct {
		m, err := s.From(ctx, subject, from)
		if errors.Is(err, ErrNone) {
			return nil, nil
		}
		return []Message{m}, err
	}
	request, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": s.prefix + subject, "batch": n, "max_bytes": 1_000_000})
	if err != nil {
		return nil, err
	}
	err = s.hub.try(ctx, func(ctx context.Context) error {
		list = list[:0]
		inbox := s.hub.conn.NewInbox()
		answers := make(chan *nats.Msg, n+1) // with the end
		subscription, err := s.hub.conn.ChanSubscribe(inbox, answers)
		if err != nil {
			return err
		}
		defer subscription.Unsubscribe()
		if err := s.hub.conn.PublishRequest("$JS.API.DIRECT.GET."+s.name, inbox, request); err != nil {
			return err
		}
		for {
			var raw *nats.Msg
			select {
			case raw = <-answers:
			case <-ctx.Done():
				return ctx.Err()
			}
			switch status := raw.Header.Get("Status"); status {
			case "":
				m, err := s.message(raw)
				if err != nil {
					return err
				}
				list = append(list, m)
			case "204", "404": // the end, or nothing at all
				return nil
			case "503":
				return nats.ErrNoResponders
			default:
				return fmt.Errorf("the store answers %s %s", status, raw.Header.Get("Description"))
			}
		}
	})
	return list, err
}

// message reads a message that came with a batch.
func (s *Stream) message(raw *nats.Msg) (Message, error) {
	seq, err := strconv.ParseUint(raw.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return Message{}, fmt.Errorf("a message of %s has no sequence number", s.name)
	}
	at, _ := time.Parse(time.RFC3339Nano, raw.Header.Get("Nats-Time-Stamp")) // none is none
	subject := raw.Header.Get("Nats-Subject")
	if len(subject) < len(s.prefix) {
		return Message{}, fmt.Errorf("a message of %s has no subject", s.name)
	}
	return Message{subject[len(s.prefix):], seq, at, raw.Data}, nil
}
