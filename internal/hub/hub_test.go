package hub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// childVariable makes the test binary a process that appends until it is killed.
const childVariable = "ASHLAR_HUB_CHILD"

func TestMain(m *testing.M) {
	if place := os.Getenv(childVariable); place != "" {
		if err := appendForever(place); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	hubtest.Stop()
	os.Exit(code)
}

// eachPlace runs a test in a folder, on three servers, and on an unmodified
// nats-server.
func eachPlace(t *testing.T, f func(t *testing.T, o Options)) {
	hubtest.EachPlace(t, func(t *testing.T, p hubtest.Place) { f(t, Options{Dir: p.Dir, URL: p.URL}) })
}

var testStream = StreamOptions{Name: "TEST", Prefix: "test"}

// appendForever prints each number when it is stored.
func appendForever(place string) error {
	ctx := context.Background()
	var o Options
	if err := json.Unmarshal([]byte(place), &o); err != nil {
		return err
	}
	h, err := Open(ctx, o)
	if err != nil {
		return err
	}
	s, err := h.Stream(ctx, testStream)
	if err != nil {
		return err
	}
	n, seq := 0, uint64(0)
	if m, err := s.Last(ctx, "a"); err == nil {
		n, _ = strconv.Atoi(string(m.Data))
		seq = m.Seq
	}
	for first := true; ; first = false {
		seq, err = s.Append(ctx, "a", []byte(strconv.Itoa(n+1)), seq)
		for first && errors.Is(err, ErrMoved) { // what the process before had sent when it was killed came after Last
			m, lost := s.Last(ctx, "a")
			if lost != nil {
				return lost
			}
			n, _ = strconv.Atoi(string(m.Data))
			seq, err = s.Append(ctx, "a", []byte(strconv.Itoa(n+1)), m.Seq)
		}
		if err != nil {
			return err
		}
		n++
		fmt.Println(n)
	}
}

func open(t *testing.T, o Options) *Hub {
	t.Helper()
	h, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func stream(t *testing.T, h *Hub) *Stream {
	t.Helper()
	s, err := h.Stream(t.Context(), testStream)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What was acknowledged is there after kill -9, and nothing is there twice.
func TestKill(t *testing.T) { eachPlace(t, testKill) }

func testKill(t *testing.T, o Options) {
	place, err := json.Marshal(struct{ Dir, URL string }{o.Dir, o.URL})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+string(place))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 200 {
			if !lines.Scan() {
				break
			}
			acknowledged, _ = strconv.Atoi(lines.Text())
		}
		cmd.Process.Kill()
		for lines.Scan() {
			acknowledged, _ = strconv.Atoi(lines.Text())
		}
		cmd.Wait()
	}
	if acknowledged < 600 {
		t.Fatalf("only %d were stored", acknowledged)
	}
	s, want := stream(t, open(t, o)), 1
	for m, err := range s.All(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != strconv.Itoa(want) {
			t.Fatalf("message %d is %s", want, m.Data)
		}
		want++
	}
	if want <= acknowledged {
		t.Errorf("%d are stored, %d were acknowledged", want-1, acknowledged)
	}
}

// A second user of a folder goes through the first.
func TestOwner(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, Options{Dir: dir}), open(t, Options{Dir: dir})
	if !a.Owner() || b.Owner() {
		t.Fatalf("owners: %v, %v", a.Owner(), b.Owner())
	}
	if info, err := os.Stat(socketFile(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
}

// Two users see the same messages.
func TestTwo(t *testing.T) { eachPlace(t, testTwo) }

func testTwo(t *testing.T, o Options) {
	a, b := open(t, o), open(t, o)
	one, two := stream(t, a), stream(t, b)
	seq, err := two.Append(t.Context(), "x", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Append(t.Context(), "x", []byte("2"), 0); !errors.Is(err, ErrMoved) {
		t.Errorf("an append that believes the subject empty: %v", err)
	}
	if _, err := one.Append(t.Context(), "x", []byte("2"), seq); err != nil {
		t.Error(err)
	}
	if m, err := two.Last(t.Context(), "x"); err != nil || string(m.Data) != "2" || m.Subject != "x" {
		t.Errorf("last: %+v, %v", m, err)
	}
}

func TestPurge(t *testing.T) { eachPlace(t, testPurge) }

func testPurge(t *testing.T, o Options) {
	s := stream(t, open(t, o))
	for _, subject := range []string{"a", "b"} {
		if _, err := s.Append(t.Context(), subject, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	a, err := s.Append(ctx, "c", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(ctx, "c", a+1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Last(ctx, "c"); !errors.Is(err, ErrNone) {
		t.Errorf("after the purge: %v", err)
	}
	if _, err := s.Append(ctx, "c", []byte("2"), 0); err != nil {
		t.Errorf("a subject that was emptied: %v", err)
	}
	names, err := s.Subjects(ctx)
	if err != nil || strings.Join(names, " ") != "a b c" {
		t.Errorf("subjects: %v, %v", names, err)
	}
	if st, err := s.State(ctx); err != nil || st.Messages != 3 {
		t.Errorf("state: %+v, %v", st, err)
	}
}

func TestObjects(t *testing.T) { eachPlace(t, testObjects) }

func testObjects(t *testing.T, at Options) {
	ctx, h := t.Context(), open(t, at)
	o, err := h.Objects(ctx, "snapshots", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("snapshot"), partBytes/8+1000) // two parts
	if err := o.Put(ctx, "one", bytes.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	r, err := o.Get(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := o.Get(ctx, "two"); !errors.Is(err, ErrNone) {
		t.Errorf("one that is not there: %v", err)
	}
	if all := listed(t, o, 1); all[0].Bytes != uint64(len(want)) {
		t.Errorf("list: %v", all)
	}
	if err := o.Delete(ctx, "one"); err != nil {
		t.Error(err)
	}
	if err := o.putPart(ctx, jetstream.ObjectMeta{Name: partName("half", 0)}, want[:10]); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Sweep(ctx, 0); err != nil || n != 1 {
		t.Errorf("%d parts swept, %v", n, err)
	}
	listed(t, o, 0)
}

// listed waits for a list of so many objects: of three servers one may be behind.
func listed(t *testing.T, o *Objects, n int) []Object {
	t.Helper()
	for {
		all, err := o.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A server that goes and comes back is waited for.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	url, stop, err := hubtest.Serve(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, Options{URL: url})
	s := stream(t, h)
	seq, err := s.Append(t.Context(), "a", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	var port int
	if _, err := fmt.Sscanf(url[strings.LastIndex(url, ":")+1:], "%d", &port); err != nil {
		t.Fatal(err)
	}
	back := make(chan func(), 1)
	go func() {
		_, stop, err := hubtest.Serve(dir, port)
		if err != nil {
			t.Error(err)
		}
		back <- stop
	}()
	if _, err := s.Append(t.Context(), "a", []byte("2"), seq); err != nil {
		t.Error(err)
	}
	h.Close()
	(<-back)()
}

// What an unmodified server acknowledged is there after it was killed.
func TestServerKilled(t *testing.T) {
	short.Skip(t)
	program, dir := hubtest.Program(t), t.TempDir()
	ports, err := hubtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	start := func() func() {
		stop, err := hubtest.StartProgram(program, ports[0], "-js", "-a", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-sd", dir)
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	stop := start()
	s, seq := stream(t, open(t, Options{URL: fmt.Sprintf("nats://127.0.0.1:%d", ports[0])})), uint64(0)
	for i := range 300 {
		if i%100 == 50 {
			stop()
			stop = start()
		}
		if seq, err = s.Append(t.Context(), "a", []byte(strconv.Itoa(i)), seq); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for m, err := range s.All(t.Context(), "a") {
		if err != nil || string(m.Data) != strconv.Itoa(i) {
			t.Fatalf("message %d: %s, %v", i, m.Data, err)
		}
		i++
	}
	if i != 300 {
		t.Errorf("%d messages", i)
	}
	stop()
}

// A question is answered by whoever answers, and says so if nobody does.
func TestAsk(t *testing.T) { eachPlace(t, testAsk) }

func testAsk(t *testing.T, o Options) {
	ctx, a, b := t.Context(), open(t, o), open(t, o)
	if _, err := a.Ask(ctx, "q", nil, time.Minute); !errors.Is(err, ErrNobody) {
		t.Errorf("nobody answers: %v", err)
	}
	stop, err := b.Answer("q", func(question []byte) []byte { return append([]byte("re: "), question...) })
	if err != nil {
		t.Fatal(err)
	}
	for { // the servers tell each other that somebody listens
		got, err := a.Ask(ctx, "q", []byte("x"), time.Minute)
		if errors.Is(err, ErrNobody) {
			continue
		}
		if err != nil || string(got) != "re: x" {
			t.Errorf("%q, %v", got, err)
		}
		break
	}
	stop()
}

func TestWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Dir: file}, {URL: "nats://127.0.0.1:1"}, {URL: "nats://127.0.0.1:1", Creds: file + "x"}} {
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("%+v opens", o)
		}
	}
}
