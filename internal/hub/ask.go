package hub

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrNobody says that no process answers a subject.
var ErrNobody = errors.New("nobody answers")

// Ask sends a question to one of the processes that answer a subject, and waits
// for what it says. It is not tried again.
func (h *Hub) Ask(ctx context.Context, subject string, question []byte, wait time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := h.conn.RequestWithContext(ctx, subject, question)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, ErrNobody
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Answer answers a subject, one question after the other, until the function
// that it returns is called.
func (h *Hub) Answer(subject string, f func(question []byte) []byte) (stop func(), err error) {
	s, err := h.conn.QueueSubscribe(subject, consumerName, func(m *nats.Msg) {
		m.Respond(f(m.Data)) // who has gone needs no answer
	})
	if err != nil {
		return nil, err
	}
	return func() { s.Drain() }, nil
}

// MaxMessage is the longest message that the store takes.
func (h *Hub) MaxMessage() int { return int(h.conn.MaxPayload()) }
