//go:build !js

package view

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

type listener = net.Listener

// PortError says that a port cannot be used.
type PortError struct {
	Port int
	Err  error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d cannot be used (%v): choose another one, or none for one that is free", e.Port, e.Err)
}

func (e *PortError) Unwrap() error { return e.Err }

// New starts to listen. The error is a *[PortError].
func New(o Options) (*Server, error) {
	files, err := pageFiles()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, &PortError{o.Port, err}
	}
	s := newServer(o)
	s.listener, s.token, s.hosts, s.files = listener, o.Token, hosts(listener.Addr().(*net.TCPAddr).Port), files
	if s.token == "" {
		s.token = newToken()
	}
	return s, nil
}

// newToken is 128 random bits as a path can hold them.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// minToken is the length of a token that cannot be guessed.
const minToken = 32

// CheckToken says why a token cannot be one.
func CheckToken(token string) error {
	for _, c := range token {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return errors.New("the token has other characters than letters, digits, - and _: choose another, such as openssl rand -hex 16 gives")
		}
	}
	if len(token) < minToken {
		return fmt.Errorf("the token has %d characters, which can be guessed: choose one of at least %d, such as openssl rand -hex 16 gives", len(token), minToken)
	}
	return nil
}

// Port is where the server listens.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Address is where the page is.
func (s *Server) Address() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// How long clients may take.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	endTime    = time.Second // for answers under way when the server ends
)

// Serve answers until the context ends. It returns when everything it started has
// ended.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.load(ctx)
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // of connections that break off
	}
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		end, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if h.Shutdown(end) != nil {
			h.Close()
		}
	})
	err := h.Serve(s.listener)
	if ctx.Err() != nil {
		err = nil // the end was asked for
	}
	cancel()
	<-closed
	s.waitForWork()
	return err
}
