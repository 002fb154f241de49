package hub

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// QueueOptions describe a queue.
type QueueOptions struct {
	Name   string // of letters, digits, - and _
	Prefix string // of the subjects
	// Wait is after how long a job goes to another worker, unless the first one
	// says that it is still at it.
	Wait time.Duration
}

// Queue is jobs to be done, each once under its subject. A job is delivered at
// least once, and stays until a worker says that it is done.
type Queue struct {
	hub      *Hub
	prefix   string
	options  QueueOptions
	stream   jetstream.Stream
	consumer jetstream.Consumer
}

// Job is a job that was delivered to this worker.
type Job struct {
	hub       *Hub
	msg       jetstream.Msg
	Subject   string
	Data      []byte
	Delivered int // how often, this time included
}

// consumerName is that of the one consumer of a queue, which all workers share.
const consumerName = "workers"

// Queue opens a queue, and makes it if it is not there.
func (h *Hub) Queue(ctx context.Context, o QueueOptions) (*Queue, error) {
	q := &Queue{hub: h, prefix: o.Prefix + ".", options: o}
	err := h.try(ctx, func(ctx context.Context) (err error) {
		if q.stream, err = h.js.Stream(ctx, o.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
			q.stream, err = h.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: o.Name, Subjects: []string{o.Prefix + ".*"}, Storage: jetstream.FileStorage, Replicas: h.replicas(),
				Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
			})
		}
		if err != nil {
			return err
		}
		if err = q.open(ctx); h.mendConsumer(o.Name, err) {
			err = q.open(ctx)
		}
		return err
	})
	if err != nil {
		return nil, h.cannotOpen("queue "+o.Name, err)
	}
	return q, nil
}

// open finds or makes the consumer.
func (q *Queue) open(ctx context.Context) (err error) {
	q.consumer, err = q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.options.Wait, MaxDeliver: -1, MaxAckPending: 1 << 16, MaxWaiting: 1 << 14,
	})
	return err
}

// Push puts a job into the queue. It does nothing if one with that subject waits
// or is being done.
func (q *Queue) Push(ctx context.Context, subject string, data []byte) error {
	if err := q.hub.room(); err != nil {
		return err
	}
	err := q.hub.try(ctx, func(ctx context.Context) error {
		_, err := q.hub.js.Publish(ctx, q.prefix+subject, data, jetstream.WithExpectStream(q.options.Name), jetstream.WithRetryAttempts(0))
		return err
	})
	if err != nil && strings.Contains(err.Error(), "maximum messages per subject exceeded") { // it has no code of its own
		return nil
	}
	return err
}

// Pull waits for a job for at most the given time; 0 is not at all. It returns
// [ErrNone] if there was none.
func (q *Queue) Pull(ctx context.Context, wait time.Duration) (*Job, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fetch := func() (jetstream.MessageBatch, error) { return q.consumer.Fetch(1, jetstream.FetchContext(waiting)) }
	if wait <= 0 {
		fetch = func() (jetstream.MessageBatch, error) { return q.consumer.FetchNoWait(1) }
	}
	batch, err := fetch()
	if err != nil {
		return nil, err
	}
	if msg, ok := <-batch.Messages(); ok {
		meta, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		return &Job{q.hub, msg, msg.Subject()[len(q.prefix):], msg.Data(), int(meta.NumDelivered)}, nil
	}
	err = batch.Error()
	switch {
	case err == nil, errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return nil, ErrNone
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrConsumerDeleted):
		return nil, q.hub.try(ctx, q.open) // a store that came back empty
	}
	return nil, err
}

// Beat says that the job is still being done.
func (j *Job) Beat() error { return j.msg.InProgress() }

// Done removes the job from the queue. It does nothing if it is gone already.
func (j *Job) Done(ctx context.Context) error {
	return j.hub.try(ctx, j.msg.DoubleAck)
}

// Return gives the job back, to be delivered after the given time.
func (j *Job) Return(after time.Duration) error { return j.msg.NakWithDelay(after) }

// QueueState is how much is in a queue.
type QueueState struct {
	Waiting int // not delivered yet, or given back
	Taken   int // delivered, and not done yet
}

// State asks how much is in the queue.
func (q *Queue) State(ctx context.Context) (st QueueState, err error) {
	err = q.hub.try(ctx, func(ctx context.Context) error {
		info, err := q.consumer.Info(ctx)
		if err == nil {
			st = QueueState{int(info.NumPending), info.NumAckPending}
		}
		return err
	})
	return st, err
}

// Remove takes a job out of the queue, wherever it is.
func (q *Queue) Remove(ctx context.Context, subject string) error {
	return q.hub.try(ctx, func(ctx context.Context) error {
		return q.stream.Purge(ctx, jetstream.WithPurgeSubject(q.prefix+subject))
	})
}
