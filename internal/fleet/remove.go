package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Removed is what ashlar fleet rm --json prints.
type Removed struct {
	Removed []string `json:"removed"` // hashes
}

// Requeued is what ashlar fleet redo --json prints.
type Requeued struct {
	Queued int `json:"queued"`
}

// LeastHash is how many digits of a hash name a file at least.
const LeastHash = 6

// Find returns the hashes of files that are named by the beginning of their hash,
// or that are of a run.
func (x *Index) Find(names []string, run string) ([]string, error) {
	found := map[string]bool{}
	for _, e := range x.Entries() {
		if run != "" && e.Run == run {
			found[e.Hash] = true
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for hash, f := range x.files { // those without answers, too
		if run != "" && f.Run == run {
			found[hash] = true
		}
	}
	if run != "" && len(found) == 0 {
		return nil, fmt.Errorf("no file is of the run %q: ashlar fleet query --group-by run lists them", run)
	}
	for _, name := range names {
		matches := x.byHash(name)
		switch {
		case len(name) < LeastHash:
			return nil, fmt.Errorf("%q is too short for a hash: give at least %d digits of one, as ashlar fleet query --show hash,file shows it", name, LeastHash)
		case len(matches) == 0:
			return nil, fmt.Errorf("no file has a hash that begins with %q: ashlar fleet query --show hash,file shows them", name)
		case len(matches) > 1:
			return nil, fmt.Errorf("%d files have a hash that begins with %q: give more digits of one, as ashlar fleet query --show hash,file shows it", len(matches), name)
		}
		found[matches[0]] = true
	}
	hashes := make([]string, 0, len(found))
	for hash := range found {
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	return hashes, nil
}

// byHash returns the hashes that begin so. The caller has the lock.
func (x *Index) byHash(begin string) (matches []string) {
	if len(begin) < LeastHash {
		return nil
	}
	for hash := range x.files {
		if strings.HasPrefix(hash, strings.ToLower(begin)) {
			matches = append(matches, hash)
		}
	}
	return matches
}

// FindOne returns the hash of the one file that a text names: by the beginning of
// its hash, by the name under which it was added, or by the end of that name, from
// a slash on. It is empty if no file is meant, perhaps since the text is a run.
func (x *Index) FindOne(text string) (hash string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	matches := x.byHash(text)
	if len(matches) == 0 {
		exact := false
		for hash, f := range x.files {
			switch name := filepath.ToSlash(f.Name); {
			case f.Name == text && !exact:
				exact, matches = true, []string{hash}
			case f.Name == text, !exact && strings.HasSuffix(name, "/"+filepath.ToSlash(text)):
				matches = append(matches, hash)
			}
		}
	}
	switch len(matches) {
	case 0:
		return "", nil
	case 1:
		return matches[0], nil
	}
	return "", fmt.Errorf("%d files are called %s or have a hash that begins so: give more digits of a hash, as ashlar fleet query --show hash,file shows it", len(matches), text)
}

// Remove removes a file and its answers. A file that is on shared storage stays
// there, and an alarm keeps its snapshot.
func (st *Store) Remove(ctx context.Context, hash string) error {
	if err := st.files.Purge(ctx, hash, 0); err != nil {
		return err
	}
	if err := st.queue.Remove(ctx, hash); err != nil {
		return err
	}
	if err := st.forget(ctx, hash); err != nil {
		return err
	}
	err := st.objects.Delete(ctx, hash)
	if errors.Is(err, hub.ErrNone) {
		return nil
	}
	return err
}

// forget removes what was found out about a file.
func (st *Store) forget(ctx context.Context, hash string) error {
	err := st.rows.Purge(ctx, rowSubject(hash), 0)
	for _, q := range questions {
		err = errors.Join(err, st.results.Purge(ctx, q.subject(hash), 0))
		if e := st.objects.Delete(ctx, q.subject(hash)); !errors.Is(e, hub.ErrNone) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, st.strikes.Purge(ctx, hash, 0), st.strikes.Purge(ctx, begunSubject(hash), 0), st.strikes.Purge(ctx, damagedSubject(hash), 0))
}

// Redo has files analysed again: those with answers of an earlier version only,
// those without any or with some that cannot be read, and those that failed or were
// set aside. It returns how many.
func (st *Store) Redo(ctx context.Context) (int, error) {
	x, err := NewIndex(ctx, st)
	if err != nil {
		return 0, err
	}
	answered, err := st.answered(ctx, false)
	if err != nil {
		return 0, err
	}
	n := 0
	for hash := range x.files {
		row, ok := x.rows[hash]
		if ok && row.versions == versions() {
			if row.Error == "" && answered.all(hash) == nil {
				continue
			}
			if err := st.forget(ctx, hash); err != nil {
				return n, err
			}
		}
		if err := st.enqueue(ctx, hash); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Retention says what a server removes.
type Retention struct {
	Keep    time.Duration // files that were added longer ago go; 0: none
	MaxDisk uint64        // the oldest go when there is more; 0: none
}

// retain removes what is too old or too much.
func (st *Store) retain(ctx context.Context, x *Index, r Retention) error {
	if r.Keep == 0 && r.MaxDisk == 0 {
		return nil
	}
	files := x.oldestFirst()
	for len(files) > 0 && r.Keep > 0 && st.now().Sub(files[0].time) > r.Keep {
		if err := st.Remove(ctx, files[0].Hash); err != nil {
			return err
		}
		files = files[1:]
	}
	if r.MaxDisk == 0 {
		return nil
	}
	disk, err := st.disk(ctx)
	if err != nil || disk <= r.MaxDisk {
		return err
	}
	lost, err := st.objects.Lost(ctx) // no removal frees it
	for err == nil && len(files) > 0 && disk-min(disk, lost) > r.MaxDisk {
		if err := st.Remove(ctx, files[0].Hash); err != nil {
			return err
		}
		files = files[1:]
		disk, err = st.disk(ctx)
	}
	return err
}

// oldestFirst returns the files in the order in which the store got them.
func (x *Index) oldestFirst() []*indexFile {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*indexFile, 0, len(x.files))
	for _, f := range x.files {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *indexFile) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.Hash, b.Hash)) })
	return all
}
