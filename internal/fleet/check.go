package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Checked is what a check of the store found.
type Checked struct {
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"` // that were hashed again
	Results int     `json:"results"`
	Waiting int     `json:"waiting"` // files that no worker has analysed yet
	Damaged int     `json:"damaged"` // descriptions and rows in the store that cannot be read
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
	answered, err := st.answered(ctx, true)
	if err != nil {
		return nil, err
	}
	c.Results, c.Damaged = len(answered), x.lostFiles+x.lostRows
	for hash, f := range x.files {
		c.Files++
		n, err := st.checkBytes(ctx, &f.File)
		c.Bytes += n
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row, ok := x.rows[hash]
		switch {
		case err != nil:
			st.markDamaged(ctx, hash)
		case !ok:
			c.Waiting++
		case row.versions != versions():
			err = errors.New("it was analysed by an earlier version: ashlar fleet redo renews that, when workers run")
		default:
			err = answered.all(hash)
		}
		if err != nil {
			c.Wrong = append(c.Wrong, Wrong{hash, f.Name, err.Error()})
		}
	}
	slices.SortFunc(c.Wrong, func(a, b Wrong) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Hash, b.Hash)) })
	return c, nil
}

// answered is what is wrong with each result that is there, by its subject; nil for
// most of them.
type answered map[string]error

// answered looks which results are there, and whether each can be read: of all of
// them, or of those alone that a stream does not check itself.
func (st *Store) answered(ctx context.Context, all bool) (answered, error) {
	have := answered{}
	err := st.results.Each(ctx, 0, func(m hub.Message) error {
		have[m.Subject] = nil
		if all || len(m.Data) > 0 && m.Data[0] == storedObject {
			have[m.Subject] = st.checkResult(ctx, m)
		}
		return ctx.Err()
	})
	return have, err
}

// all looks whether a file has all its answers.
func (a answered) all(hash string) error {
	for _, q := range questions {
		err, ok := a[q.subject(hash)]
		switch {
		case !ok:
			return damagedAnswer(q)
		case err != nil:
			return fmt.Errorf("%w (%w)", damagedAnswer(q), err)
		}
	}
	return nil
}

// damagedAnswer says that an answer is not there though the row says that it was.
func damagedAnswer(q question) error {
	return errors.New("its answer of " + q.name + " is damaged: ashlar fleet redo asks again, when workers run")
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
			err = errors.New("the file has changed since it was added: add it again from where it is unchanged")
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is not there any more: add the file again from where it is now", f.Path)
		}
		return n, err
	}
	r, err := st.open(ctx, f)
	if errors.Is(err, hub.ErrNone) {
		if f.Alarm != "" {
			return 0, nil
		}
		err = errors.New("its bytes are not in the store: add the file again")
	}
	if err != nil {
		return 0, err
	}
	h := sha256.New()
	n, err := io.Copy(h, r)
	if errors.Is(err, hub.ErrDamaged) || err == nil && hex.EncodeToString(h.Sum(nil)) != f.Hash {
		err = errors.New("its bytes in the store are damaged: add the file again")
	}
	return n, err
}
