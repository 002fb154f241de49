package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// AddOptions say what is known of files that are added.
type AddOptions struct {
	Run    string
	Commit string
	Tags   map[string]string
	ByPath bool // the files stay where they are; workers read them there
}

// Added is what became of files.
type Added struct {
	Added   int       `json:"added"`
	Known   int       `json:"known"` // were there already
	Refused []Refused `json:"refused"`
	Skipped []Refused `json:"skipped"` // in folders: what was not looked at
	Notes   []string  `json:"notes"`
	Error   string    `json:"error,omitempty"` // of the store, which ended it
}

// Refused is a file that was not taken.
type Refused struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// Add adds files. One that cannot be used is refused; an error is that of the
// store, and what was added before it stays.
func (st *Store) Add(ctx context.Context, files []Path, o AddOptions, progress func(done int)) (out Added, err error) {
	out = Added{Refused: []Refused{}, Skipped: []Refused{}, Notes: []string{}}
	differs, mended := 0, 0
	defer func() { out.note(differs, mended) }()
	for i, path := range files {
		added, err := st.addFile(ctx, path.Name, o)
		var refusal *refusal
		switch {
		case errors.Is(err, errOtherFacts):
			differs++
			err = nil
		case errors.Is(err, errMended):
			mended++
			err = nil
		}
		switch {
		case path.Found && input.IsOther(err):
			out.Skipped = append(out.Skipped, Refused{path.Name, "it is no snapshot, dump or message"})
		case errors.As(err, &refusal):
			out.Refused = append(out.Refused, Refused{path.Name, refusal.Error()})
		case err != nil:
			return out, err
		case added:
			out.Added++
		default:
			out.Known++
		}
		progress(i + 1)
	}
	return out, nil
}

// note says what else became of files that were known.
func (a *Added) note(differs, mended int) {
	if differs > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%s known with another run, commit or tag, which stays: remove it (ashlar fleet rm), then add it again", count(differs, "file is", "files are")))
	}
	if mended > 0 {
		a.Notes = append(a.Notes, count(mended, "file that was known could not be read any more and has", "files that were known could not be read any more and have")+" its bytes again")
	}
}

// What there may be to say of a file that is known.
var (
	// errOtherFacts says that the caller describes it in another way.
	errOtherFacts = errors.New("the file is known with another run, commit or tag")
	// errMended says that its bytes had gone, and are there again.
	errMended = errors.New("the file is known, and had lost its bytes")
)

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(int64(n)) + " " + many
}

// AddOne adds a file if it is not in the fleet, and returns its hash.
func (st *Store) AddOne(ctx context.Context, path string) (hash string, err error) {
	if _, err := st.addFile(ctx, path, AddOptions{}); err != nil && !errors.Is(err, errOtherFacts) && !errors.Is(err, errMended) {
		return "", err
	}
	hash, _, err = hashFile(path)
	return hash, err
}

// refusal is what is wrong with a file, not with the store.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

// addFile adds one file. It reports false if the fleet has it.
func (st *Store) addFile(ctx context.Context, path string, o AddOptions) (added bool, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return false, refuse("%s is no ordinary file: write it to one first", path)
	}
	if err := input.Plausible(ctx, path); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, &refusal{err}
	}
	f := &File{Name: path, Run: o.Run, Commit: o.Commit, Tags: o.Tags, AddedUS: st.now().UnixMicro()}
	if f.Hash, f.Bytes, err = hashFile(path); err != nil {
		return false, &refusal{err}
	}
	if o.ByPath {
		if f.Path, err = filepath.Abs(path); err != nil {
			return false, &refusal{err}
		}
	}
	if known, err := st.known(ctx, f, path); known || err != nil {
		return false, err
	}
	if !o.ByPath {
		if err := st.upload(ctx, f, path); err != nil {
			return false, err
		}
	}
	return st.enter(ctx, f)
}

// enter puts a file whose bytes are stored into the fleet. It reports false if
// the fleet has it.
func (st *Store) enter(ctx context.Context, f *File) (added bool, err error) {
	switch err := create(ctx, st.files, f.Hash, f); {
	case errors.Is(err, hub.ErrMoved):
		added = false
	case err != nil:
		return false, err
	default:
		added = true
	}
	return added, st.enqueue(ctx, f.Hash)
}

// AddAlarm enters a snapshot of watch, which stays where it is.
func (st *Store) AddAlarm(ctx context.Context, s watch.StoredSnapshot) error {
	number := func(n int) *int64 {
		v := int64(n)
		return &v
	}
	_, err := st.enter(ctx, &File{
		Hash: s.SHA256, Name: s.Name, Bytes: s.Bytes, Alarm: s.Name, AddedUS: st.now().UnixMicro(),
		Run: s.Job.Run, Attempt: number(s.Job.Attempt), Rank: number(s.Job.Rank), World: number(s.Job.World),
		Commit: s.Job.Commit, Tags: s.Job.Tags, Host: s.Job.Host,
	})
	return err
}

// known reports whether the fleet has a file, which the caller has at a path. If
// whoever added it was cut off before the queue had it, that is made up for. The
// error is errOtherFacts if it is described in another way, and errMended if its
// bytes had gone.
func (st *Store) known(ctx context.Context, f *File, path string) (bool, error) {
	was, err := st.file(ctx, f.Hash)
	switch {
	case errors.Is(err, hub.ErrNone):
		return false, nil
	case err != nil:
		return false, err
	}
	lost, err := st.lost(ctx, was)
	if err != nil {
		return true, err
	}
	if lost {
		return true, st.mend(ctx, was, f, path)
	}
	row, err := read[Row](ctx, st.rows, rowSubject(f.Hash))
	if errors.Is(err, hub.ErrNone) {
		err = st.enqueue(ctx, f.Hash)
	}
	if err == nil && !was.says(f, &row) {
		err = errOtherFacts
	}
	return true, err
}

// says reports whether what a user says of a file is what is known of it, from
// users or from the file itself.
func (f *File) says(user *File, r *Row) bool {
	for key, value := range user.Tags {
		if cmp.Or(f.Tags[key], r.Tags[key]) != value {
			return false
		}
	}
	return (user.Run == "" || user.Run == cmp.Or(f.Run, r.Run)) && (user.Commit == "" || user.Commit == cmp.Or(f.Commit, r.Commit))
}

// upload copies a file into the store. The file must still be the one that was
// hashed.
func (st *Store) upload(ctx context.Context, f *File, path string) error {
	r, err := os.Open(path)
	if err != nil {
		return &refusal{err}
	}
	defer r.Close()
	h := sha256.New()
	if err := st.objects.Put(ctx, f.Hash, io.TeeReader(r, h)); err != nil {
		return fmt.Errorf("%s is not added: %w", path, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != f.Hash {
		return errors.Join(refuse("%s changed while it was read: add it again when it is complete", path), st.objects.Delete(ctx, f.Hash))
	}
	return nil
}

func hashFile(path string) (hash string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// ParseTag reads KEY=VALUE.
func ParseTag(s string) (key, value string, err error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return "", "", fmt.Errorf("write KEY=VALUE")
	}
	return key, value, nil
}
