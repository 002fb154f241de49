package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options say where the messages are. Either Dir or URL is given.
type Options struct {
	Dir   string // a folder, which is made if it is not there
	URL   string // of a cluster: nats://, tls:// or ws://
	Creds string // a file with the credentials for URL; may be empty
}

// Hub is an open store.
type Hub struct {
	options Options
	owned   *owned // nil if another process owns the folder, or for a cluster
	conn    *nats.Conn
	js      jetstream.JetStream
}

// How long one call may take, and how often it is tried.
const (
	callTime = 5 * time.Second
	attempts = 4
	pause    = 50 * time.Millisecond // before the second attempt; it doubles
)

// Errors of a store.
var (
	// ErrNone says that there is no such message or object.
	ErrNone = errors.New("there is no such message")
	// ErrMoved says that a subject has other messages than the caller believes.
	ErrMoved = errors.New("somebody else has appended to the subject")
)

// Open opens a store. A folder that another process owns is reached through that
// process.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{options: o}
	connect := []nats.Option{nats.Name("ashlar"), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.Timeout(callTime)}
	url := o.URL
	switch {
	case url != "":
		if o.Creds != "" {
			if _, err := os.Stat(o.Creds); err != nil {
				return nil, fmt.Errorf("the credentials %s cannot be read: check the name, and that the file is yours", o.Creds)
			}
			connect = append(connect, nats.UserCredentials(o.Creds))
		}
	default:
		owned, err := own(o.Dir)
		if err != nil {
			return nil, err
		}
		if h.owned = owned; owned != nil {
			connect = append(connect, nats.InProcessServer(owned.server))
		} else {
			url = "nats://127.0.0.1" // not dialled: the socket is
			connect = append(connect, nats.SetCustomDialer(socketDialer(o.Dir)))
		}
	}
	var err error
	if h.conn, err = nats.Connect(url, connect...); err == nil {
		h.js, err = jetstream.New(h.conn, jetstream.WithDefaultTimeout(callTime))
	}
	if err == nil {
		err = h.try(ctx, func(ctx context.Context) error {
			_, err := h.js.AccountInfo(ctx)
			return err
		})
	}
	if err != nil {
		h.Close()
		hint := "check that the disk has room and the files are yours"
		if o.URL != "" {
			hint = "check the URL, such as nats://HOST:4222, and that the cluster runs with JetStream"
		}
		return nil, fmt.Errorf("the store %s cannot be opened (%w): %s", h.name(), err, hint)
	}
	return h, nil
}

func (h *Hub) name() string {
	if h.options.URL != "" {
		return h.options.URL
	}
	return h.options.Dir
}

// Owner reports whether this process owns the folder.
func (h *Hub) Owner() bool { return h.owned != nil }

// Local reports whether the messages are in a folder of this machine.
func (h *Hub) Local() bool { return h.options.URL == "" }

// Connected reports whether the store can be reached now.
func (h *Hub) Connected() bool { return h.conn.IsConnected() }

// Close ends the connection, and the server if this process owns it.
func (h *Hub) Close() {
	if h.conn != nil {
		h.conn.Close()
	}
	if h.owned != nil {
		h.owned.close()
	}
}

// try calls f with a deadline until it answers.
func (h *Hub) try(ctx context.Context, f func(context.Context) error) error {
	wait := pause
	for attempt := 1; ; attempt++ {
		call, cancel := context.WithTimeout(ctx, callTime)
		err := f(call)
		cancel()
		if err == nil || ctx.Err() != nil || attempt == attempts || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// passing reports whether an error may go away by itself: a server that starts,
// a leader that is being elected, a connection that broke.
func passing(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}
