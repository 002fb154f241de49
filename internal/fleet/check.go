package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Checked is what a check of the store found.
type Checked struct {
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"` // that were hashed again
	Results int     `json:"results"`
	Wrong   []Wrong `json:"wrong"`
}

// Wrong is a file that is not as it should be.
type Wrong struct {
	Hash  string `json:"hash"`
	File  string `json:"file"`
	Error string `json:"error"`
}

// Check reads every part of every file and every result again.
func (st *Store) Check(ctx context.Context) (*Checked, error) {
	c := &Checked{Wrong: []Wrong{}}
	x, err := NewIndex(ctx, st)
	if err != nil {
		return nil, err
	}
	have := map[string]error{}
	err = st.results.Each(ctx, 0, func(m hub.Message) error {
		have[m.Subject] = st.checkResult(ctx, m)
		c.Results++
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for hash, f := range x.files {
		c.Files++
		n, err := st.checkBytes(ctx, &f.File)
		c.Bytes += n
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = x.checkResults(hash, have)
		}
		if err != nil {
			c.Wrong = append(c.Wrong, Wrong{hash, f.Name, err.Error()})
		}
	}
	slices.SortFunc(c.Wrong, func(a, b Wrong) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Hash, b.Hash)) })
	return c, nil
}

// checkResult reads a result, unless it says that there is none.
func (st *Store) checkResult(ctx context.Context, m hub.Message) error {
	if len(m.Data) > 0 && m.Data[0] == storedError {
		return nil
	}
	data, err := st.unpack(ctx, m)
	if err == nil && !json.Valid(data) {
		err = errors.New("the result " + m.Subject + " is no JSON")
	}
	return err
}

// checkBytes hashes a file again. A snapshot of watch may have gone: its history
// is kept for a time.
func (st *Store) checkBytes(ctx context.Context, f *File) (int64, error) {
	if f.Path != "" {
		hash, n, err := hashFile(f.Path)
		if err == nil && hash != f.Hash {
			err = errors.New("the file has changed since it was added")
		}
		return n, err
	}
	r, err := st.open(ctx, f)
	if errors.Is(err, hub.ErrNone) {
		if f.Alarm != "" {
			return 0, nil
		}
		err = errors.New("its bytes are not in the store: remove it, and add it again")
	}
	if err != nil {
		return 0, err
	}
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err == nil && hex.EncodeToString(h.Sum(nil)) != f.Hash {
		err = errors.New("its bytes are damaged: remove it, and add it again")
	}
	return n, err
}

// checkResults looks whether a file has all its answers.
func (x *Index) checkResults(hash string, have map[string]error) error {
	row, ok := x.rows[hash]
	if !ok || row.versions != versions() {
		return errors.New("it has not been analysed by this version: ashlar fleet redo does it, when workers run")
	}
	for _, q := range questions {
		err, ok := have[q.subject(hash)]
		if !ok {
			err = errors.New("it has no answer of " + q.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
