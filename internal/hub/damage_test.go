package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// damagedMessages is how many messages a store has that is damaged.
const damagedMessages = 200

// fillStore makes a store whose server was ended, or killed.
func fillStore(t *testing.T, killed bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	h := open(t, Options{Dir: dir})
	s, last := stream(t, h), uint64(0)
	for i := range damagedMessages {
		var err error
		if last, err = s.Append(t.Context(), "a", fmt.Appendf(nil, "message %d", i), last); err != nil {
			t.Fatal(err)
		}
	}
	if !killed {
		h.Close()
		return dir
	}
	for {
		if k, _, err := readKnown(dir); err == nil && k.Streams["TEST"].Last == last {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	copied := t.TempDir() // what is on the disk now is what kill -9 would leave
	copyStore(t, dir, copied)
	h.Close()
	return copied
}

func copyStore(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// change changes a file; nil removes it.
func change(t *testing.T, path string, f func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = f(data); data == nil {
		err = os.RemoveAll(path)
	} else {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openTold opens a store, and returns what it says of itself.
func openTold(t *testing.T, dir string) (h *Hub, told []string, err error) {
	t.Helper()
	h, err = Open(t.Context(), Options{Dir: dir, Log: func(text string) { told = append(told, text) }})
	if err == nil {
		t.Cleanup(h.Close)
	}
	return h, told, err
}

func zero(data []byte) []byte { clear(data); return data }

// Every damage is told once, what is intact is served, damaged bytes are kept, and no
// sequence number is given twice.
func TestDamage(t *testing.T) {
	h, err := blockHash("TEST", 1)
	if err != nil {
		t.Fatal(err)
	}
	at := func(t *testing.T, data []byte, i int) (n int) { // where the record of message i begins
		for range i {
			r := recordAt(h, data[n:])
			if !r.intact {
				t.Fatalf("there is no message at %d", n)
			}
			n += r.length
		}
		return n
	}
	for _, c := range []struct {
		name, file string
		damage     func(t *testing.T, data []byte) []byte
		left       int    // messages
		told       string // part of it
		kept       bool   // the damaged file
	}{
		{"nothing", "msgs/1.blk", func(_ *testing.T, data []byte) []byte { return data }, 200, "", false},
		{"a sequence number", "msgs/1.blk", func(t *testing.T, data []byte) []byte { data[at(t, data, 100)+9] ^= 0xff; return data }, 199, "block 1", true},
		{"a length", "msgs/1.blk", func(t *testing.T, data []byte) []byte { data[at(t, data, 100)] ^= 0x0f; return data }, 199, "block 1", true},
		{"some zeros", "msgs/1.blk", func(t *testing.T, data []byte) []byte { clear(data[at(t, data, 100):at(t, data, 102)]); return data }, 198, "block 1", true},
		{"the end", "msgs/1.blk", func(t *testing.T, data []byte) []byte { return zeroFrom(data, at(t, data, 150)) }, 150, "block 1", true},
		{"zeros", "msgs/1.blk", func(_ *testing.T, data []byte) []byte { return zero(data) }, 0, "block 1", true},
		{"cut off in a message", "msgs/1.blk", func(t *testing.T, data []byte) []byte { return data[:at(t, data, 150)+5] }, 150, "1.blk|block 1", true},
		{"cut off between two", "msgs/1.blk", func(t *testing.T, data []byte) []byte { return data[:at(t, data, 150)] }, 150, "1.blk|message 150", false},
		{"empty", "msgs/1.blk", func(*testing.T, []byte) []byte { return []byte{} }, 0, "1.blk|message 0", false},
		{"no block", "msgs/1.blk", func(*testing.T, []byte) []byte { return nil }, 0, "1.blk|message 0", false},
		{"garbage for a description", "meta.inf", func(*testing.T, []byte) []byte { return []byte("garbage") }, 200, "description", true},
		{"an empty description", "meta.inf", func(*testing.T, []byte) []byte { return []byte{} }, 200, "description", true},
		{"no description", "meta.inf", func(*testing.T, []byte) []byte { return nil }, 200, "description", false},
		{"the sum of the description", "meta.sum", func(_ *testing.T, data []byte) []byte { return zero(data) }, 200, "description", true},
	} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s killed=%v", c.name, killed), func(t *testing.T) {
				dir := fillStore(t, killed)
				var damaged []byte
				change(t, filepath.Join(streamsDir(dir), "TEST", c.file), func(data []byte) []byte {
					damaged = c.damage(t, data)
					return damaged
				})
				h, told, err := openTold(t, dir)
				if err != nil {
					t.Fatal(err)
				}
				checkTold(t, told, dir, c.told)
				checkLeft(t, h, c.left)
				if kept := keptFile(t, dir, filepath.Base(c.file)); c.kept != (kept != nil) || kept != nil && !bytes.Equal(kept, damaged) {
					t.Errorf("%d bytes are kept of %d", len(kept), len(damaged))
				}
				h.Close()
				if h, told, err = openTold(t, dir); err != nil || len(told) > 0 {
					t.Fatalf("the second time: %q, %v", told, err)
				}
				checkLeft(t, h, c.left+1)
			})
		}
	}
}

func zeroFrom(data []byte, n int) []byte { clear(data[n:]); return data }

// checkTold checks for one line that has one of some parts; none if they are empty.
func checkTold(t *testing.T, told []string, dir, parts string) {
	t.Helper()
	if parts == "" {
		if len(told) > 0 {
			t.Errorf("told: %q", told)
		}
		return
	}
	if len(told) != 1 || !strings.Contains(told[0], dir) || strings.Contains(told[0], "\n") {
		t.Fatalf("told: %q", told)
	}
	for part := range strings.SplitSeq(parts, "|") {
		if strings.Contains(told[0], part) {
			return
		}
	}
	t.Errorf("told: %s", told[0])
}

// checkLeft checks how many messages of a subject can be read, and that a new one
// comes behind all that ever were.
func checkLeft(t *testing.T, h *Hub, want int) {
	t.Helper()
	s, n, last := stream(t, h), 0, uint64(0)
	for m, err := range s.All(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
		n, last = n+1, m.Seq
	}
	if n != want {
		t.Errorf("%d messages are left, want %d", n, want)
	}
	seq, err := s.Append(t.Context(), "a", []byte("new"), last)
	if err != nil || seq <= damagedMessages {
		t.Errorf("the next is message %d, %v", seq, err)
	}
}

// keptFile returns what was put aside under a name; nil if nothing was.
func keptFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "damaged", "*", "TEST", name))
	if err != nil || len(paths) > 1 {
		t.Fatalf("%q, %v", paths, err)
	}
	if len(paths) == 0 {
		return nil
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A message whose bytes have changed is told, and stays where it is: the server that
// comes next serves the others, and says of this one that it is damaged.
func TestDamagedMessage(t *testing.T) {
	dir := fillStore(t, false)
	change(t, filepath.Join(messagesDir(dir, "TEST"), "1.blk"), func(data []byte) []byte {
		data[bytes.Index(data, []byte("message 100"))] ^= 0xff
		return data
	})
	h, told, err := openTold(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	checkTold(t, told, dir, "block 1")
	st, err := stream(t, h).State(t.Context())
	if err != nil || st.Messages != damagedMessages || keptFile(t, dir, "1.blk") != nil {
		t.Errorf("%+v, %v", st, err)
	}
}

// Streams that are gone are told, and what cannot be read is left as it is.
func TestGone(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, path := range []string{"jetstream", filepath.Join("jetstream", "$G", "streams", "TEST")} {
			dir := fillStore(t, killed)
			if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
			_, told, err := openTold(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			checkTold(t, told, dir, "TEST: all of it is missing")
		}
		for _, path := range []string{"meta.inf", filepath.Join("msgs", "1.blk")} {
			dir := fillStore(t, killed)
			path = filepath.Join(streamsDir(dir), "TEST", path)
			if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil { // nobody reads a folder as a file
				t.Fatal(err)
			}
			if _, told, err := openTold(t, dir); err == nil || !strings.Contains(err.Error(), path) || len(told) > 0 {
				t.Fatalf("%q, %v", told, err)
			}
			if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
				t.Fatal(err)
			}
			h, told, err := openTold(t, dir)
			if err != nil || len(told) > 0 {
				t.Fatalf("%q, %v", told, err)
			}
			checkLeft(t, h, damagedMessages)
		}
	}
}

// What the store should hold is itself damaged.
func TestDamagedKnown(t *testing.T) {
	dir := fillStore(t, false)
	change(t, knownPath(dir), func([]byte) []byte { return []byte("garbage") })
	h, told, err := openTold(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	checkTold(t, told, dir, filepath.Base(knownPath(dir)))
	checkLeft(t, h, damagedMessages)
}

// What a server removes on its own, and was told to, is no damage, wherever it is
// killed.
func TestNoDamage(t *testing.T) {
	dir := t.TempDir()
	h := open(t, Options{Dir: dir})
	ctx := t.Context()
	purged, err := h.Stream(ctx, StreamOptions{Name: "PURGED", Prefix: "purged"})
	if err != nil {
		t.Fatal(err)
	}
	single, err := h.Stream(ctx, StreamOptions{Name: "SINGLE", Prefix: "single", PerSubject: 1})
	if err != nil {
		t.Fatal(err)
	}
	old, err := h.Stream(ctx, StreamOptions{Name: "OLD", Prefix: "old", MaxAge: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	q, err := h.Queue(ctx, QueueOptions{Name: "QUEUE", Prefix: "queue", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	o, err := h.Objects(ctx, "objects", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		name := strconv.Itoa(i)
		_, err1 := purged.Append(ctx, name, []byte(name), 0)
		_, err2 := old.Append(ctx, name, []byte(name), 0)
		if err := errors.Join(err1, err2, single.Put(ctx, "x", []byte(name)), q.Push(ctx, name, nil), o.Put(ctx, name, strings.NewReader(name)), o.Delete(ctx, name)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 3 {
			if err := purged.Purge(ctx, "", uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 0 {
			job, err := q.Pull(ctx, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := job.Done(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := purged.Purge(ctx, "", 51); err != nil {
		t.Fatal(err)
	}
	for {
		st, err := old.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if k, _, err := readKnown(dir); err == nil && st.Messages == 0 && k.Streams["OLD"].Last == 50 && k.Streams["PURGED"].Last == 50 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	killed := t.TempDir()
	copyStore(t, dir, killed)
	h.Close()
	for _, dir := range []string{dir, killed} {
		h, told, err := openTold(t, dir)
		if err != nil || len(told) > 0 {
			t.Fatalf("%q, %v", told, err)
		}
		q, err := h.Queue(ctx, QueueOptions{Name: "QUEUE", Prefix: "queue", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if st, err := q.State(ctx); err != nil || st.Waiting != 25 {
			t.Errorf("%+v, %v", st, err)
		}
	}
}

// A queue whose blocks are gone hands out what is pushed later.
func TestDamagedQueue(t *testing.T) {
	for _, file := range []string{"msgs/1.blk", "meta.inf", "obs/" + consumerName + "/meta.inf", "obs/" + consumerName + "/o.dat"} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s killed=%v", file, killed), func(t *testing.T) { testDamagedQueue(t, file, killed) })
		}
	}
}

func testDamagedQueue(t *testing.T, file string, killed bool) {
	ctx, dir := context.Background(), t.TempDir()
	h := open(t, Options{Dir: dir})
	o := QueueOptions{Name: "QUEUE", Prefix: "queue", Wait: time.Minute}
	q, err := h.Queue(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := q.Push(ctx, strconv.Itoa(i), nil); err != nil {
			t.Fatal(err)
		}
		job, err := q.Pull(ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Push(ctx, "waits", nil); err != nil {
		t.Fatal(err)
	}
	for killed {
		if k, _, err := readKnown(dir); err == nil && k.Streams["QUEUE"].Last == 21 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if killed {
		copied := t.TempDir()
		copyStore(t, dir, copied)
		dir = copied
	}
	h.Close()
	path := filepath.Join(streamsDir(dir), "QUEUE", filepath.FromSlash(file))
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	change(t, path, zero)
	var told []string
	h = open(t, Options{Dir: dir, Log: func(text string) { told = append(told, text) }})
	if q, err = h.Queue(ctx, o); err != nil {
		t.Fatal(err)
	}
	if len(told) > 1 || len(told) == 0 && file != "obs/"+consumerName+"/meta.inf" { // which holds nothing
		t.Errorf("told: %q", told)
	}
	if err := q.Push(ctx, "new", nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != "new" {
		job, err := q.Pull(ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, job.Subject)
	}
	if file != "msgs/1.blk" && (len(got) != 2 || got[0] != "waits") {
		t.Errorf("%q", got)
	}
}
