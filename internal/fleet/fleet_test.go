//go:build linux

package fleet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// filled is a fleet of some files that are analysed in this process.
func filled(t *testing.T, o hub.Options, n int) (*Store, []string) {
	t.Helper()
	st := openStore(t, o)
	files, err := filepath.Glob(makeFiles(t, t.TempDir(), n))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := st.Add(t.Context(), paths(files...), AddOptions{Run: "r"}, func(int) {}); err != nil || a.Added != n {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, path := range files {
		a, err := Analyse(t.Context(), path, path)
		if err != nil {
			t.Fatal(err)
		}
		hash, _, err := hashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second does nothing
			if err := st.commit(t.Context(), hash, a); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.queue.Remove(t.Context(), hash); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, st, func(x *Index) bool {
		answered, err := st.answered(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return len(x.Entries()) == n && !slices.ContainsFunc(slices.Collect(maps.Keys(x.files)), func(hash string) bool { return answered.all(hash) != nil })
	})
	return st, files
}

// settled waits until the index is as it is to be: of three servers one may be behind, and is asked too.
func settled(t *testing.T, st *Store, is func(*Index) bool) *Index {
	t.Helper()
	for {
		x, err := NewIndex(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		if is(x) {
			return x
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAdd(t *testing.T) { eachPlace(t, testAdd) }

func testAdd(t *testing.T, o hub.Options) {
	st, files := filled(t, o, 4)
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := st.Add(t.Context(), paths(files[0], junk, junk+"x"), AddOptions{}, func(int) {})
	if err != nil || a.Added != 0 || a.Known != 1 || len(a.Refused) != 2 || a.Refused[0].File != junk || !strings.Contains(a.Refused[1].Error, "junkx") {
		t.Errorf("%+v, %v", a, err)
	}
	if q, err := st.queue.State(t.Context()); err != nil || q != (hub.QueueState{}) {
		t.Errorf("a file that is analysed is queued: %+v, %v", q, err)
	}
}

// What is damaged or missing is found.
func TestCheck(t *testing.T) { eachPlace(t, testCheck) }

func testCheck(t *testing.T, o hub.Options) {
	ctx := t.Context()
	st, files := filled(t, o, 4)
	check := func(want string) {
		t.Helper()
		for try := 0; ; try++ { // of several servers one that follows may not have heard of the change yet
			c, err := st.Check(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range c.Wrong {
				got = append(got, filepath.Base(w.File)+": "+w.Error)
			}
			if strings.Join(got, "\n") == want && c.Files == 4 && (c.Results == 8 || want != "" || c.Waiting > 0) {
				return
			}
			if try == 1000 {
				t.Fatalf("%+v, want %q", c, want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	check("")
	hash, _, err := hashFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := st.objects.Put(ctx, hash, strings.NewReader("other bytes")); err != nil {
		t.Fatal(err)
	}
	check("0001.pickle.gz: its bytes in the store are damaged: add the file again")
	if a, err := st.Add(ctx, paths(files...), AddOptions{}, func(int) {}); err != nil || a.Added != 0 || a.Known != 4 || len(a.Notes) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	check("")
	if err := st.results.Purge(ctx, explainQuestion.subject(hash), 0); err != nil {
		t.Fatal(err)
	}
	check("0001.pickle.gz: its answer of explain is damaged: ashlar fleet redo asks again, when workers run")
	n := 0
	for n == 0 && err == nil { // as above
		n, err = st.Redo(ctx)
	}
	if err != nil || n != 1 {
		t.Fatalf("%d are asked again, %v", n, err)
	}
	check("") // it waits, and that is not wrong
	for waiting := 0; waiting != 1; {
		c, err := st.Check(ctx)
		if err != nil || c.Waiting > 1 {
			t.Fatalf("%+v, %v", c, err)
		}
		waiting = c.Waiting
	}
}

// Redo asks again only what has no answer, or failed.
func TestRedo(t *testing.T) { eachPlace(t, testRedo) }

func testRedo(t *testing.T, o hub.Options) {
	ctx := t.Context()
	st, files := filled(t, o, 3)
	if n, err := st.Redo(ctx); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	hash, _, err := hashFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := st.forget(ctx, hash); err != nil {
		t.Fatal(err)
	}
	if err := st.commit(ctx, hash, failedAnalysis("set aside", true)); err != nil {
		t.Fatal(err)
	}
	settled(t, st, func(x *Index) bool { return x.rows[hash].Error != "" })
	if n, err := st.Redo(ctx); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	settled(t, st, func(x *Index) bool { return len(x.Entries()) == 2 && len(x.missing()) == 1 })
}

// The oldest go first, and an index sees that they have gone.
func TestRetention(t *testing.T) { eachPlace(t, testRetention) }

func testRetention(t *testing.T, o hub.Options) {
	ctx := t.Context()
	st, _ := filled(t, o, 4)
	x, err := NewIndex(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	first := x.oldestFirst()[0].Hash
	disk, err := st.disk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.tidy(ctx, x, Retention{MaxDisk: disk - 1}); err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(ctx); err != nil || len(x.Entries()) != 3 || x.oldestFirst()[0].Hash == first {
		t.Errorf("%d entries, %v", len(x.Entries()), err)
	}
	st.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	if err := st.tidy(ctx, x, Retention{Keep: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(ctx); err != nil || len(x.Entries()) != 0 {
		t.Errorf("%d entries, %v", len(x.Entries()), err)
	}
}

// TestDropReplies: what nobody came for goes, and files stay.
func TestDropReplies(t *testing.T) {
	st, _ := filled(t, hub.Options{Dir: t.TempDir()}, 1)
	if err := st.objects.Put(t.Context(), replyName+"old", strings.NewReader("[]")); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		age  time.Duration
		want int
	}{{time.Hour, 2}, {0, 1}} {
		if err := st.dropReplies(t.Context(), x.age); err != nil {
			t.Fatal(err)
		}
		if all, err := st.objects.List(t.Context()); err != nil || len(all) != x.want {
			t.Errorf("older than %v: %v, %v", x.age, all, err)
		}
	}
}

func TestNewer(t *testing.T) { eachPlace(t, testNewer) }

func testNewer(t *testing.T, o hub.Options) {
	st := openStore(t, o)
	if err := replace(t.Context(), st.facts, "format", map[string]int{"format": format + 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), st.hub); err == nil || !strings.Contains(err.Error(), "newer ashlar") {
		t.Errorf("%v", err)
	}
	for versions, want := range map[string]bool{versions(): false, "1-1": false, "1-1-2": true, "2-1-1": true, "1-1-1-1": true} {
		if newer(versions) != want {
			t.Errorf("%s: %v", versions, !want)
		}
	}
}

// A file that is delivered again and again is set aside only if the workers that
// began it went away: a store that was out of reach is not its fault.
func TestBegun(t *testing.T) {
	st := openStore(t, hub.Options{Dir: t.TempDir()})
	files, err := filepath.Glob(makeFiles(t, t.TempDir(), 1))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := st.AddOne(t.Context(), files[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.file(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{Store: st, options: (&roleFlags{jobs: 1, maxTime: time.Hour}).options()}
	var c *child
	defer func() { c.end() }()
	aside := func() bool {
		t.Helper()
		a, err := w.analyse(t.Context(), f, 2*maxBegun, &c)
		if err != nil {
			t.Fatal(err)
		}
		return a.Row.Aside
	}
	for range maxBegun + 1 {
		if aside() {
			t.Fatal("a file is set aside though its workers live")
		}
	}
	for i := range maxBegun {
		gone, _, err := w.begin(t.Context(), hash, 2*maxBegun) // and no end
		if err != nil || gone != i {
			t.Fatalf("%d workers are gone, %v; want %d", gone, err, i)
		}
	}
	if !aside() {
		t.Error("a file with which all workers go away is not set aside")
	}
	if err := st.forget(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	if aside() {
		t.Error("a file that is asked about anew is still set aside")
	}
}
