package answers

import (
	"cmp"
	"context"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// Entry is one file of the fleet: a snapshot, a dump of memory_stats() or a
// message. What nobody said about it is empty or nil.
type Entry struct {
	Hash string // SHA-256 of the file, in hex: its identity
	File string // its name when it was added

	Run     string
	Attempt *int64 // of the run, which a scheduler counts at restarts
	Rank    *int64
	World   *int64 // how many ranks the run has
	Commit  string
	Tags    map[string]string
	Host    string

	// FirstSeenUS is when the fleet got the file, in microseconds since the Unix
	// epoch.
	FirstSeenUS int64

	// Error says why the file was refused, set aside or could not be explained. Its
	// Summary has what is known all the same.
	Error   string
	Summary Summary

	// Source reads again what the entry was made from.
	Source Source
}

// Source reads what is known of a file, by its hash. It may be called by several
// goroutines.
type Source interface {
	// Explain returns the document of ashlar explain as it was stored.
	Explain(ctx context.Context, hash string) (*explain.Document, error)
	// Open reads the file itself.
	Open(ctx context.Context, hash string) (*input.Input, error)
}

// TimeUS returns when the file was written, else when the fleet got it.
func (e *Entry) TimeUS() int64 {
	if e.Summary.WrittenUS != nil {
		return *e.Summary.WrittenUS
	}
	return e.FirstSeenUS
}

// Failed reports whether a request for memory failed in the file.
func (e *Entry) Failed() bool {
	return e.Summary.Trigger != "" && e.Summary.Trigger != explain.None
}

// ordered returns entries by time. Files of the same time are in the order in
// which the fleet got them, and then by their hash, so that answers do not depend
// on the order of a list.
func ordered(entries []Entry, keep func(e *Entry) bool) []*Entry {
	type timed struct {
		us int64
		*Entry
	}
	var all []timed
	for i := range entries {
		if e := &entries[i]; keep(e) {
			all = append(all, timed{e.TimeUS(), e})
		}
	}
	slices.SortFunc(all, func(a, b timed) int {
		return cmp.Or(cmp.Compare(a.us, b.us), cmp.Compare(a.FirstSeenUS, b.FirstSeenUS), cmp.Compare(a.Hash, b.Hash))
	})
	out := make([]*Entry, len(all))
	for i := range all {
		out[i] = all[i].Entry
	}
	return out
}
