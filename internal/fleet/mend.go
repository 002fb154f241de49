package fleet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Whoever finds that the bytes of a file are damaged in the store leaves a mark: to
// read all bytes whenever a known file is added would take too long. Whoever has
// the file adds it again, and its bytes are stored anew.

func damagedSubject(hash string) string { return hash + "_damaged" }

// markDamaged notes that the bytes of a file cannot be read.
func (st *Store) markDamaged(ctx context.Context, hash string) {
	replace(ctx, st.strikes, damagedSubject(hash), true) // a wish: the next one who reads it finds out, too
}

// lost reports whether the bytes of a known file have gone, as far as that can be
// told without reading them.
func (st *Store) lost(ctx context.Context, f *File) (bool, error) {
	if f.Path != "" {
		info, err := os.Stat(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return true, nil
		case err != nil:
			return false, nil // perhaps others can see it
		case info.Size() != f.Bytes:
			return true, nil
		}
	} else {
		objects, name := st.objects, f.Hash
		if f.Alarm != "" {
			objects, name = st.alarms, f.Alarm
		}
		_, err := objects.Stat(ctx, name)
		for i := 0; i < 3 && errors.Is(err, hub.ErrNone); i++ { // a server that follows may not have it yet
			sleep(ctx, 100*time.Millisecond)
			_, err = objects.Stat(ctx, name)
		}
		if errors.Is(err, hub.ErrNone) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	_, err := st.strikes.Last(ctx, damagedSubject(f.Hash))
	if errors.Is(err, hub.ErrNone) {
		return false, nil
	}
	return err == nil, err
}

// mend gives a known file the bytes that a user has at a path: stored anew, or
// where they are now. What was answered stays, unless the answer was that there
// are none.
func (st *Store) mend(ctx context.Context, was, now *File, path string) error {
	if now.Path == "" {
		if err := st.upload(ctx, now, path); err != nil {
			return err
		}
	}
	mended := *was
	mended.Path, mended.Alarm = now.Path, ""
	if mended.Path != was.Path || mended.Alarm != was.Alarm {
		if err := replace(ctx, st.files, was.Hash, &mended); err != nil {
			return err
		}
	}
	row, err := read[Row](ctx, st.rows, rowSubject(was.Hash))
	if err != nil && !errors.Is(err, hub.ErrNone) {
		return err
	}
	if err == nil && row.Error == "" {
		if err := st.strikes.Purge(ctx, damagedSubject(was.Hash), 0); err != nil {
			return err
		}
		return errMended
	}
	if err := st.forget(ctx, was.Hash); err != nil {
		return err
	}
	if err := st.enqueue(ctx, was.Hash); err != nil {
		return err
	}
	return errMended
}
