//go:build linux

package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// spoil changes a byte behind a text in the blocks of a stream.
func spoil(t *testing.T, dir, stream, text string) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range blocks {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			data[at+len(text)+1] ^= 0xff
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%q is not in %s", text, stream)
}

// logFile writes an out-of-memory message of some length, which nothing compresses.
func logFile(t *testing.T, path, mark string, length int) string {
	t.Helper()
	text := mark + strings.Repeat(".", length) +
		"\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free.\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// analysed commits the analysis of a file as a worker does.
func analysed(t *testing.T, st *Store, path string) (hash string) {
	t.Helper()
	a, err := Analyse(t.Context(), path, path)
	if err != nil {
		t.Fatal(err)
	}
	if hash, _, err = hashFile(path); err != nil {
		t.Fatal(err)
	}
	if err := st.commit(t.Context(), hash, a); err != nil {
		t.Fatal(err)
	}
	return hash
}

// A block of files is damaged on the disk: check says so, the neighbours can be
// read, adding the file again mends it, and no other file goes for the room that
// the damaged bytes take.
func TestDamagedFile(t *testing.T) {
	ctx, dir, from := t.Context(), t.TempDir(), t.TempDir()
	var files []string
	for _, mark := range []string{"first", "second", "third"} {
		files = append(files, logFile(t, filepath.Join(from, mark), "mark-"+mark, 100_000))
	}
	st := openStore(t, hub.Options{Dir: dir})
	if a, err := st.Add(ctx, paths(files...), AddOptions{}, func(int) {}); err != nil || a.Added != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, path := range files {
		analysed(t, st, path)
	}
	st.hub.Close()
	spoil(t, dir, "OBJ_ASHLAR_objects", "mark-second")
	st = openStore(t, hub.Options{Dir: dir})
	c, err := st.Check(ctx)
	if err != nil || len(c.Wrong) != 1 || !strings.Contains(c.Wrong[0].Error, "damaged") {
		t.Fatalf("%+v, %v", c, err)
	}
	if a, err := st.Add(ctx, paths(files...), AddOptions{}, func(int) {}); err != nil || a.Known != 3 || len(a.Notes) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if c, err := st.Check(ctx); err != nil || len(c.Wrong) != 0 {
		t.Errorf("after the file was added again: %+v, %v", c, err)
	}
	if a, err := st.Add(ctx, paths(files...), AddOptions{}, func(int) {}); err != nil || a.Known != 3 || len(a.Notes) != 0 {
		t.Errorf("a third time: %+v, %v", a, err)
	}
	x, err := NewIndex(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := st.disk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := st.objects.Lost(ctx)
	if err != nil || lost < 90_000 || lost > 110_000 {
		t.Fatalf("%d bytes of %d are lost, %v", lost, disk, err)
	}
	if err := st.retain(ctx, x, Retention{MaxDisk: disk - lost - 1}); err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(ctx); err != nil || len(x.files) != 2 {
		t.Errorf("%d files are left, %v", len(x.files), err)
	}
}

// A block of rows or of answers is damaged: it is called so, and one redo is
// enough.
func TestDamagedAnswers(t *testing.T) {
	for _, stream := range []string{"rows", "results"} {
		t.Run(stream, func(t *testing.T) {
			ctx, dir, from := t.Context(), t.TempDir(), t.TempDir()
			st := openStore(t, hub.Options{Dir: dir})
			var hashes []string
			for _, name := range []string{"a", "b", "c"} {
				path := logFile(t, filepath.Join(from, name), name, 10)
				if _, err := st.AddOne(ctx, path); err != nil {
					t.Fatal(err)
				}
				hashes = append(hashes, analysed(t, st, path))
			}
			for _, hash := range hashes {
				if err := st.queue.Remove(ctx, hash); err != nil {
					t.Fatal(err)
				}
			}
			st.hub.Close()
			subject := map[string]string{"rows": rowSubject(hashes[1]), "results": explainQuestion.subject(hashes[1])}[stream]
			spoil(t, dir, "ASHLAR_"+stream, subject)
			st = openStore(t, hub.Options{Dir: dir})
			c, err := st.Check(ctx)
			if err != nil || c.Damaged+len(c.Wrong) != 1 || len(c.Wrong) == 1 && !strings.Contains(c.Wrong[0].Error, "damaged") {
				t.Fatalf("%+v, %v", c, err)
			}
			x, err := NewIndex(ctx, st) // as a server has it meanwhile
			if err != nil {
				t.Fatal(err)
			}
			if n, err := st.Redo(ctx); err != nil || n != 1 {
				t.Fatalf("%d are asked again, %v", n, err)
			}
			analysed(t, st, filepath.Join(from, "b"))
			if c, err := st.Check(ctx); err != nil || len(c.Wrong)+c.Waiting != 0 {
				t.Errorf("after one redo: %+v, %v", c, err)
			}
			if err := x.Refresh(ctx); err != nil || len(x.Entries()) != 3 {
				t.Errorf("%d entries, %v", len(x.Entries()), err)
			}
		})
	}
}

// A file that was added by path and has moved is added again from where it is.
func TestMoved(t *testing.T) { eachPlace(t, testMoved) }

func testMoved(t *testing.T, o hub.Options) {
	ctx, dir := t.Context(), t.TempDir()
	st := openStore(t, o)
	path, now := logFile(t, filepath.Join(dir, "old"), "moved", 10), filepath.Join(dir, "new")
	if a, err := st.Add(ctx, paths(path), AddOptions{ByPath: true, Run: "r"}, func(int) {}); err != nil || a.Added != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := os.Rename(path, now); err != nil {
		t.Fatal(err)
	}
	hash, _, err := hashFile(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.commit(ctx, hash, failedAnalysis("no such file", false)); err != nil {
		t.Fatal(err)
	}
	for _, o := range []AddOptions{{ByPath: true}, {}} { // where it is; then copied
		if a, err := st.Add(ctx, paths(now), o, func(int) {}); err != nil || a.Known != 1 || len(a.Notes) != 1 {
			t.Fatalf("%+v, %v", a, err)
		}
		f, err := st.file(ctx, hash)
		if err != nil || o.ByPath && f.Path != now || !o.ByPath && f.Path != "" || f.Run != "r" {
			t.Errorf("%+v, %v", f, err)
		}
		if c, err := st.Check(ctx); err != nil || len(c.Wrong) != 0 || c.Waiting != 1 {
			t.Errorf("%+v, %v", c, err)
		}
		if err := os.Rename(now, path); err != nil {
			t.Fatal(err)
		}
		now, path = path, now
	}
}

// A worker that is killed leaves no file behind.
func TestNoTemporaryFiles(t *testing.T) {
	skipShort(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	from := t.TempDir()
	o := hub.Options{Dir: t.TempDir()}
	st := openStore(t, o)
	if _, err := st.AddOne(t.Context(), logFile(t, filepath.Join(from, "x"), "poison: sleep", 10)); err != nil {
		t.Fatal(err)
	}
	w := start(t, at(o, "work", "-max-time", "1h")...)
	for {
		if q, err := st.queue.State(t.Context()); err == nil && q.Taken == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	w.kill()
	if left, err := filepath.Glob(filepath.Join(temp, "ashlar-fleet-*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
