package hub

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// makeCertificate writes a certificate for this machine, and its key.
func makeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Other machines need TLS and the token; processes of this user the socket alone.
func TestListen(t *testing.T) {
	cert, key := makeCertificate(t)
	const token = "0123456789abcdef"
	dir := t.TempDir()
	a := open(t, Options{Dir: dir, Listen: &Listen{Address: "127.0.0.1:0", Cert: cert, Key: key, Token: token}})
	if _, err := stream(t, a).Append(t.Context(), "x", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(a.Address(), "nats://"), "tls://"))
	if err != nil {
		t.Fatalf("%q: %v", a.Address(), err)
	}
	for name, o := range map[string]Options{
		"elsewhere": {URL: "tls://127.0.0.1:" + port, CA: cert, Token: token},
		"here":      {Dir: dir},
	} {
		if m, err := stream(t, open(t, o)).Last(t.Context(), "x"); err != nil || string(m.Data) != "1" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]Options{
		"a wrong token": {URL: "tls://127.0.0.1:" + port, CA: cert, Token: token + "x"},
		"no token":      {URL: "tls://127.0.0.1:" + port, CA: cert},
		"no CA":         {URL: "tls://127.0.0.1:" + port, Token: token},
	} {
		if h, err := Open(t.Context(), o); err == nil {
			h.Close()
			t.Errorf("%s opens the store", name)
		} else if strings.Contains(err.Error(), token) || name == "a wrong token" && !strings.Contains(err.Error(), "check the credentials") || name == "no CA" && !strings.Contains(err.Error(), "--ca") {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func(d time.Duration) { ownerTime = d }(ownerTime)
	ownerTime = time.Millisecond
	if _, err := Open(t.Context(), Options{Dir: dir, Listen: &Listen{Address: "127.0.0.1:0"}}); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("who does not own the folder listens: %v", err)
	}
}

// Whoever wants to let other machines in waits for a process that ends soon.
func TestListenWaits(t *testing.T) {
	dir := t.TempDir()
	short := open(t, Options{Dir: dir})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(4 * pause)
		short.Close()
	}()
	if h := open(t, Options{Dir: dir, Listen: &Listen{Address: "127.0.0.1:0"}}); !h.Owner() || h.Address() == "" {
		t.Errorf("owner %v at %q", h.Owner(), h.Address())
	}
	<-ended
}

// Processes that open a store at once all open it, though each would make it with
// other options.
func TestOpenTogether(t *testing.T) { eachPlace(t, testOpenTogether) }

func testOpenTogether(t *testing.T, o Options) {
	var all sync.WaitGroup
	for i := range 6 {
		h, age := open(t, o), time.Duration(i+1)*time.Hour
		all.Go(func() {
			for j := range 5 {
				if _, err := h.Objects(t.Context(), "o"+strconv.Itoa(j), age); err != nil {
					t.Error(err)
				}
				name := "s" + strconv.Itoa(j)
				if _, err := h.Stream(t.Context(), StreamOptions{Name: name, Prefix: name, MaxAge: age}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestListenCheck(t *testing.T) {
	for _, x := range []struct {
		listen Listen
		want   string // part of the error; empty if there is none
	}{
		{Listen{Address: "127.0.0.1:0"}, ""},
		{Listen{Address: "localhost:4222"}, ""},
		{Listen{Address: "[::1]:4222"}, ""},
		{Listen{Address: "0.0.0.0:4222"}, "other machines"},
		{Listen{Address: ":4222"}, "other machines"},
		{Listen{Address: "10.0.0.1:4222", Cert: "c", Key: "k"}, "other machines"},
		{Listen{Address: "10.0.0.1:4222", Cert: "c", Key: "k", Token: "short"}, "16"},
		{Listen{Address: "10.0.0.1:4222", Cert: "c", Key: "k", Token: "0123456789abcdef"}, ""},
		{Listen{Address: "127.0.0.1:1", Cert: "c"}, "go together"},
		{Listen{Address: "4222"}, "HOST:PORT"},
		{Listen{Address: "127.0.0.1:99999"}, "HOST:PORT"},
	} {
		err := x.listen.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x.listen, err)
		}
	}
}

// When the owner has gone, another process takes its place; one that follows
// waits.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	follower, heir := open(t, Options{Dir: dir, Follow: true}), open(t, Options{Dir: dir})
	if _, err := stream(t, a).Append(t.Context(), "x", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	f, h := stream(t, follower), stream(t, heir)
	a.Close()
	for name, s := range map[string]*Stream{"heir": h, "follower": f} {
		if m, err := s.Last(t.Context(), "x"); err != nil || string(m.Data) != "1" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !heir.Owner() || follower.Owner() {
		t.Errorf("owners: %v, %v", heir.Owner(), follower.Owner())
	}
}

// What is put into a queue is delivered until it is done, and is there once.
func TestQueue(t *testing.T) { eachPlace(t, testQueue) }

func testQueue(t *testing.T, o Options) {
	ctx, h := t.Context(), open(t, o)
	q, err := h.Queue(ctx, QueueOptions{Name: "WORK", Prefix: "work", Wait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := q.Push(ctx, "a", []byte("job")); err != nil {
			t.Fatal(err)
		}
	}
	for delivered := 1; delivered <= 3; delivered++ { // once given back, once forgotten
		job, err := q.Pull(ctx, 5*time.Second)
		if err != nil || job.Subject != "a" || string(job.Data) != "job" || job.Delivered != delivered {
			t.Fatalf("%+v, %v", job, err)
		}
		switch delivered {
		case 1:
			err = job.Return(0)
		case 3:
			err = job.Done(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Pull(ctx, 300*time.Millisecond); err != ErrNone {
		t.Errorf("after it was done: %v", err)
	}
	if st, err := q.State(ctx); err != nil || st != (QueueState{}) {
		t.Errorf("%+v, %v", st, err)
	}
}

// Each sees every message, also behind others that were removed.
func TestEach(t *testing.T) { eachPlace(t, testEach) }

func testEach(t *testing.T, o Options) {
	ctx := t.Context()
	s := stream(t, open(t, o))
	const n = 1100 // more than one bulk
	for i := range n {
		if _, err := s.Append(ctx, "s"+strconv.Itoa(i), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	read := func(from uint64) (n int, last uint64) {
		t.Helper()
		err := s.Each(ctx, from, func(m Message) error {
			n++
			last = m.Seq
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n, last
	}
	if got, last := read(0); got != n || last != n {
		t.Errorf("%d messages, the last %d", got, last)
	}
	if n, _ := read(n + 1); n != 0 {
		t.Errorf("%d messages behind the end", n)
	}
	for _, subject := range []string{"s5", "s1099"} {
		if err := s.Purge(ctx, subject, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got, last := read(3); got != n-4 || last != n-1 {
		t.Errorf("%d messages, the last %d", got, last)
	}
}

// An address that stands for all of a machine is of no use to another one.
func TestReachable(t *testing.T) {
	name := func() (string, error) { return "login1", nil }
	for address, want := range map[string]string{
		"tls://0.0.0.0:4222": "tls://login1:4222", "nats://[::]:4222": "nats://login1:4222",
		"nats://127.0.0.1:4222": "nats://127.0.0.1:4222", "tls://node7:4222": "tls://node7:4222",
	} {
		if got := reachable(address, name); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
