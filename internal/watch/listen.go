package watch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Listen opens an address: unix:PATH, or a port of the loopback address. A socket
// that nobody serves any more is replaced.
func Listen(address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%s is no address of this machine alone: write unix:PATH or 127.0.0.1:PORT", address)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be used (%w): choose another port", address, bare(err))
		}
		return l, nil
	}
	if path == "" {
		return nil, fmt.Errorf("unix: has no path: write unix:PATH, such as unix:/tmp/watch.sock")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, noSocket(path, err)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s is served already: another ashlar watch runs; see it with --once", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, fmt.Errorf("%s is there and is no socket: choose another --listen", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, noSocket(path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, noSocket(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, noSocket(path, err)
	}
	return sameUser{l}, nil
}

// maxSocket is the longest path that a socket can have everywhere.
const maxSocket = 103

// noSocket says why there is no socket, and what to do.
func noSocket(path string, err error) error {
	if len(path) > maxSocket {
		return fmt.Errorf("%s has %d letters: a socket's path has at most %d; choose a shorter one", path, len(path), maxSocket)
	}
	return fmt.Errorf("no socket can be made at %s (%w): choose a folder that you can write", path, bare(err))
}

// bare is an error without the name of the file and of the call.
func bare(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// ListenTLS opens an address of any kind, with a certificate.
func ListenTLS(address, cert, key string) (net.Listener, error) {
	pair, err := hub.KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
}

// sameUser accepts connections of this user only.
type sameUser struct{ net.Listener }

func (l sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || isSameUser(c) {
			return c, err
		}
		c.Close()
	}
}

// Serve answers on a listener until the context ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // of connections that break off
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if srv.Shutdown(end) != nil {
			srv.Close()
		}
	})
	err := srv.Serve(l)
	if stop() {
		return err
	}
	<-closed
	return nil
}
