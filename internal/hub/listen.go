package hub

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

// Listen says how other machines reach a folder.
type Listen struct {
	Address   string // host:port
	Cert, Key string // files; TLS if they are given
	Token     string // what clients have to know
}

// leastToken is the shortest token that is taken.
const leastToken = 16

// Check says what is wrong. Beyond this machine TLS and a token are needed.
func (l *Listen) Check() error {
	host, port, err := net.SplitHostPort(l.Address)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%s is no address: write HOST:PORT", l.Address)
	}
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case (l.Cert == "") != (l.Key == ""):
		return errors.New("a certificate and its key go together: give both")
	case !local && (l.Cert == "" || l.Token == ""):
		return fmt.Errorf("%s can be reached from other machines: give a certificate, its key and a token, too", l.Address)
	case l.Token != "" && len(l.Token) < leastToken:
		return fmt.Errorf("the token has %d letters: give at least %d", len(l.Token), leastToken)
	}
	return nil
}

// apply changes the options of a server; nothing if l is nil.
func (l *Listen) apply(o *server.Options) error {
	if l == nil {
		return nil
	}
	if err := l.Check(); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(l.Address) // it was checked
	o.DontListen, o.Host, o.Authorization = false, host, l.Token
	o.Port, _ = strconv.Atoi(port)
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if l.Cert == "" {
		return nil
	}
	pair, err := KeyPair(l.Cert, l.Key)
	if err != nil {
		return err
	}
	o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}

// KeyPair reads a certificate and its key, both PEM.
func KeyPair(cert, key string) (tls.Certificate, error) {
	var pair tls.Certificate
	public, err := guard.ReadFile(cert, maxSecret, "certificate")
	if err == nil {
		var private []byte
		if private, err = guard.ReadFile(key, maxSecret, "key"); err == nil {
			pair, err = tls.X509KeyPair(public, private)
		}
	}
	if err != nil {
		return pair, fmt.Errorf("the certificate cannot be used: %w", err)
	}
	return pair, nil
}

func tokenFile(dir string) string { return filepath.Join(dir, "hub.token") }

// writeToken tells the other processes of this user what the server wants to hear.
func writeToken(dir, token string) error {
	if token == "" {
		if err := os.Remove(tokenFile(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(tokenFile(dir), []byte(token), 0o600)
}

// readToken returns it; empty if the server wants to hear nothing.
func readToken(dir string) string {
	token, err := guard.ReadRegular(tokenFile(dir), maxSecret, "token")
	if err != nil {
		return ""
	}
	return string(token)
}

// Address is where other machines reach the folder; empty if they do not, or if
// this process does not own it.
func (h *Hub) Address() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owned == nil || h.options.Listen == nil {
		return ""
	}
	return reachable(h.owned.server.ClientURL(), os.Hostname)
}

// reachable puts the name of this machine in place of an address that stands for
// all of its own.
func reachable(address string, hostname func() (string, error)) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsUnspecified() {
		return address
	}
	name, err := hostname()
	if err != nil {
		name = "HOST"
	}
	u.Host = net.JoinHostPort(name, u.Port())
	return u.String()
}
