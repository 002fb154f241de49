package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// Index is the files and their rows in memory. It may be used by several
// goroutines.
type Index struct {
	store *Store

	mu       sync.Mutex
	files    map[string]*indexFile
	rows     map[string]indexRow
	rowCount int // messages, of all versions
	// Messages that the store counts and cannot read: they are damaged.
	lostFiles, lostRows int
	nextFile            uint64
	nextRow             uint64
	entries             []answers.Entry // nil when they are to be made anew
}

// indexFile is a file, and when the store got it by the store's own clock.
type indexFile struct {
	File
	time time.Time
}

type indexRow struct {
	Row
	versions string
	time     time.Time
}

// NewIndex reads all files and rows.
func NewIndex(ctx context.Context, st *Store) (*Index, error) {
	x := &Index{store: st}
	return x, x.Refresh(ctx)
}

// Refresh reads what is new.
func (x *Index) Refresh(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.files == nil {
		return x.readAll(ctx)
	}
	if err := x.read(ctx); err != nil {
		return err
	}
	files, err := x.store.files.State(ctx)
	if err != nil {
		return err
	}
	rows, err := x.store.rows.State(ctx)
	if err != nil {
		return err
	}
	if files.Messages < uint64(len(x.files)+x.lostFiles) || rows.Messages < uint64(x.rowCount+x.lostRows) { // some were removed
		return x.readAll(ctx)
	}
	return nil
}

// readAll reads everything anew, and finds out what cannot be read.
func (x *Index) readAll(ctx context.Context) error {
	x.files, x.rows, x.rowCount, x.nextFile, x.nextRow, x.entries = map[string]*indexFile{}, map[string]indexRow{}, 0, 0, 0, nil
	x.lostFiles, x.lostRows = 0, 0
	files, err := x.store.files.State(ctx)
	rows, err2 := x.store.rows.State(ctx)
	if err = errors.Join(err, err2); err == nil {
		err = x.read(ctx)
	}
	if err != nil {
		x.files = nil
		return err
	}
	x.lostFiles = max(0, int(files.Messages)-len(x.files))
	x.lostRows = max(0, int(rows.Messages)-x.rowCount)
	return nil
}

func (x *Index) read(ctx context.Context) error {
	err := x.store.files.Each(ctx, x.nextFile, func(m hub.Message) error {
		f := &indexFile{time: m.Time}
		if err := json.Unmarshal(m.Data, &f.File); err != nil {
			return fmt.Errorf("the file %s is not described as this version knows it: %w", m.Subject, err)
		}
		x.files[m.Subject], x.nextFile, x.entries = f, m.Seq+1, nil
		return nil
	})
	if err != nil {
		return err
	}
	return x.store.rows.Each(ctx, x.nextRow, func(m hub.Message) error {
		x.nextRow, x.entries = m.Seq+1, nil
		x.rowCount++
		hash, of, _ := strings.Cut(m.Subject, "_")
		if old, ok := x.rows[hash]; newer(of) || ok && old.versions == versions() && of != versions() {
			return nil
		}
		row := indexRow{versions: of, time: m.Time}
		if err := json.Unmarshal(m.Data, &row.Row); err != nil {
			return fmt.Errorf("the row %s is not as this version knows it: %w", m.Subject, err)
		}
		x.rows[hash] = row
		return nil
	})
}

// Entries returns the files that have answers, in the order of their hashes. They
// must not be changed.
func (x *Index) Entries() []answers.Entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.entries == nil {
		x.entries = []answers.Entry{}
		for hash, f := range x.files {
			if row, ok := x.rows[hash]; ok {
				x.entries = append(x.entries, x.entry(&f.File, &row.Row))
			}
		}
		slices.SortFunc(x.entries, func(a, b answers.Entry) int { return cmp.Compare(a.Hash, b.Hash) })
	}
	return x.entries
}

// entry puts together what the user and the file say; the user wins.
func (x *Index) entry(f *File, r *Row) answers.Entry {
	e := answers.Entry{
		Hash: f.Hash, File: f.Name, Run: cmp.Or(f.Run, r.Run), Attempt: cmp.Or(f.Attempt, r.Attempt), Rank: cmp.Or(f.Rank, r.Rank),
		World: cmp.Or(f.World, r.World), Commit: cmp.Or(f.Commit, r.Commit), Host: cmp.Or(f.Host, r.Host), FirstSeenUS: f.AddedUS,
		Error: r.Error, Summary: r.Summary, Source: x,
	}
	if len(f.Tags)+len(r.Tags) > 0 {
		e.Tags = maps.Clone(r.Tags)
		if e.Tags == nil {
			e.Tags = map[string]string{}
		}
		maps.Copy(e.Tags, f.Tags)
	}
	return e
}

// Explain returns the explanation of a file.
func (x *Index) Explain(ctx context.Context, hash string) (*explain.Document, error) {
	data, err := x.store.document(ctx, hash, explainQuestion)
	if err != nil {
		return nil, err
	}
	d := new(explain.Document)
	return d, json.Unmarshal(data, d)
}

// Open reads a file itself.
func (x *Index) Open(ctx context.Context, hash string) (*input.Input, error) {
	x.mu.Lock()
	f := x.files[hash]
	x.mu.Unlock()
	if f == nil {
		return nil, hub.ErrNone
	}
	if f.Path != "" {
		return input.Open(ctx, f.Path, input.Options{})
	}
	r, err := x.store.open(ctx, &f.File)
	if errors.Is(err, hub.ErrNone) {
		return nil, fmt.Errorf("%s (%.12s) is not in the store any more: add the file again", f.Name, hash)
	}
	if err != nil {
		return nil, err
	}
	temp, err := newTemp()
	if err != nil {
		return nil, err
	}
	defer temp.close()
	if _, err := io.Copy(temp.file, r); err != nil {
		if errors.Is(err, hub.ErrDamaged) {
			x.store.markDamaged(ctx, hash)
			err = fmt.Errorf("%s (%.12s): its bytes in the store are damaged: add the file again", f.Name, hash)
		}
		return nil, err
	}
	in, err := input.Open(ctx, temp.path, input.Options{})
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), temp.path, f.Name))
	}
	in.Name = f.Name
	if in.Snapshot != nil {
		in.Snapshot.Name = f.Name
	}
	return in, nil
}
