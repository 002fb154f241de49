package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

// Options say where the messages are. Either Dir or URL is given.
type Options struct {
	Dir string // a folder, which is made if it is not there
	// Follow leaves the folder to the process that owns it when that has gone, and
	// waits for it to come back.
	Follow bool
	// Listen lets other machines in if this process owns the folder.
	Listen *Listen
	// Log gets what the user should know of the folder: that it is damaged. It may be
	// nil, and may be called as long as the store is open.
	Log func(text string)

	URL   string // of a cluster: nats://, tls:// or ws://
	Creds string // a file with the credentials for URL; may be empty
	Token string // what the server at URL wants to hear; may be empty
	CA    string // a file with the certificate that the server at URL is checked by; may be empty
}

// Hub is an open store.
type Hub struct {
	options Options
	conn    *nats.Conn
	js      jetstream.JetStream

	mu     sync.Mutex
	claims []*os.File
	owned  *owned // nil if another process owns the folder, or for a cluster
	closed bool
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
	// ErrFull says that the disk of the store has no room.
	ErrFull = errors.New("the disk is full")
	// ErrMoved says that a subject has other messages than the caller believes.
	ErrMoved = errors.New("somebody else has appended to the subject")
)

// Open opens a store. A folder that another process owns is reached through that
// process.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{options: o}
	connect := []nats.Option{
		nats.Name("ashlar"), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.Timeout(callTime),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // what matters fails a call; by default it is printed
	}
	address := o.URL
	if address != "" {
		more, err := o.elsewhere()
		if err != nil {
			return nil, err
		}
		connect = append(connect, more...)
	} else {
		var err error
		if h.owned, err = o.own(ctx); err != nil {
			return nil, err
		}
		if err := h.fileLimit(); err != nil {
			h.Close()
			return nil, err
		}
		address = "nats://127.0.0.1" // not dialled: dirDialer does it
		connect = append(connect, nats.SetCustomDialer(dirDialer{h}), nats.TokenHandler(func() string { return readToken(o.Dir) }))
	}
	var err error
	for begin := time.Now(); ; time.Sleep(pause) {
		h.conn, err = nats.Connect(address, connect...)
		if err == nil || o.URL != "" || ctx.Err() != nil || time.Since(begin) > readyTime { // an owner that starts has no socket yet
			break
		}
	}
	if err == nil {
		h.js, err = jetstream.New(h.conn, jetstream.WithDefaultTimeout(callTime))
	}
	if err == nil {
		err = h.try(ctx, func(ctx context.Context) error {
			_, err := h.js.AccountInfo(ctx)
			return err
		})
	}
	if err != nil && ctx.Err() != nil {
		h.Close()
		return nil, context.Cause(ctx)
	}
	if err != nil {
		h.Close()
		hint := "check that the disk has room and the files are yours"
		switch {
		case errors.Is(err, nats.ErrAuthorization):
			hint = "check the credentials"
		case isCertificate(err):
			hint = "give the certificate that the server is checked by with --ca, and the name or address that it is for in the URL"
		case o.URL != "":
			hint = "check the URL, such as nats://HOST:4222, and that the cluster runs with JetStream"
		}
		return nil, fmt.Errorf("the store %s cannot be opened (%w): %s", h.Name(), err, hint)
	}
	return h, nil
}

// isCertificate reports whether the certificate of a server is what is wrong.
func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(err, &verify) || errors.As(err, &header)
}

// ownerTime is how long an owner is waited for; tests are less patient.
var ownerTime = 10 * time.Second

// own makes this process the owner of the folder, or returns nil if another one
// is. Only the owner can let other machines in: most others end soon, and are
// waited for.
func (o *Options) own(ctx context.Context) (*owned, error) {
	for begin := time.Now(); ; time.Sleep(pause) {
		owned, err := own(o.Dir, o.Listen, o.Log)
		if owned != nil || err != nil || o.Listen == nil {
			return owned, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if time.Since(begin) > ownerTime {
			return nil, fmt.Errorf("another process owns %s: --listen is for the owner; end that one, or give it --listen", o.Dir)
		}
	}
}

// cannotOpen words why something cannot be opened: of a full disk the server says
// only that it failed.
func (h *Hub) cannotOpen(what string, err error) error {
	if full := h.room(); full != nil {
		return full
	}
	return fmt.Errorf("the %s cannot be opened: %w", what, err)
}

// elsewhere returns how a cluster is reached.
func (o *Options) elsewhere() (connect []nats.Option, err error) {
	if o.Creds != "" {
		if err := readable("credentials", o.Creds); err != nil {
			return nil, err
		}
		connect = append(connect, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		if err := readable("certificate", o.CA); err != nil {
			return nil, err
		}
		connect = append(connect, nats.RootCAs(o.CA))
	}
	if o.Token != "" {
		connect = append(connect, nats.Token(o.Token))
	}
	return connect, nil
}

// maxSecret is far above any certificate, key or credentials.
const maxSecret = 1 // MiB

// readable says what is wrong with a file that nats.go is to read: it does so
// without a limit, and again whenever it connects.
func readable(what, path string) error {
	_, err := guard.ReadRegular(path, maxSecret, what+" file")
	var refused *guard.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("the %s: %w", what, err)
	case err != nil:
		return fmt.Errorf("the %s %s cannot be read: check the name, and that the file is yours", what, path)
	}
	return nil
}

// Name says where the store is, without what only its users should know.
func (h *Hub) Name() string {
	if h.options.URL == "" {
		return h.options.Dir
	}
	all := strings.Split(h.options.URL, ",")
	for i, text := range all {
		if u, err := url.Parse(text); err == nil {
			all[i] = u.Redacted()
		}
	}
	return strings.Join(all, ",")
}

// Owner reports whether this process owns the folder now.
func (h *Hub) Owner() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owned != nil
}

// Claim reserves a role in a folder for this process, until it closes the store.
// It reports false if another process has it. In a cluster nothing is reserved.
func (h *Hub) Claim(role string) (bool, error) {
	if h.options.Dir == "" {
		return true, nil
	}
	f, err := tryLock(filepath.Join(h.options.Dir, role+".lock"))
	if f == nil || err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims = append(h.claims, f)
	return true, nil
}

// Local reports whether the messages are in a folder of this machine.
func (h *Hub) Local() bool { return h.options.URL == "" }

// Connected reports whether the store can be reached now.
func (h *Hub) Connected() bool { return h.conn.IsConnected() }

// Close ends the connection, and the server if this process owns it.
func (h *Hub) Close() {
	if h.conn != nil {
		h.conn.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, f := range h.claims {
		f.Close()
	}
	h.claims = nil
	if h.owned != nil {
		h.owned.close()
		h.owned = nil
	}
}

// dirDialer reaches the server of a folder: that of this process, or that of the
// owner over its socket. If the owner has gone, this process takes its place.
type dirDialer struct{ hub *Hub }

func (d dirDialer) Dial(_, _ string) (net.Conn, error) {
	h := d.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, net.ErrClosed
	}
	if h.owned == nil {
		c, err := net.DialTimeout("unix", socketFile(h.options.Dir), callTime)
		if err == nil {
			return c, nil
		}
		if h.options.Follow {
			return nil, err
		}
		if h.owned, _ = own(h.options.Dir, nil, h.options.Log); h.owned == nil { // somebody else was faster, or still starts
			return nil, err
		}
	}
	return h.owned.server.InProcessConn()
}

// replicas is how many servers of a cluster keep what is stored.
func (h *Hub) replicas() int {
	if h.options.URL != "" && len(h.conn.Servers()) >= 3 {
		return 3
	}
	return 1
}

// try calls f with a deadline until it answers.
func (h *Hub) try(ctx context.Context, f func(context.Context) error) error {
	return h.tryFor(ctx, callTime, f)
}

// tryFor is try for calls that may take longer.
func (h *Hub) tryFor(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	wait := pause
	for attempt := 1; ; attempt++ {
		call, cancel := context.WithTimeout(ctx, limit)
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
		ErrDamaged,                          // a server that follows may not have all of it yet
		jetstream.ErrStreamNameAlreadyInUse, // somebody else has made it meanwhile, with other options; it is opened now
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}
