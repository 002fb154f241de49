package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// format is the version of how the store is laid out. A program does not touch a
// store of a later one.
const format = 1

// jobWait is after how long a silent worker's job goes to another one.
const jobWait = 30 * time.Second

// Store is an open fleet.
type Store struct {
	hub     *hub.Hub
	facts   *hub.Stream // of the store itself: its format
	files   *hub.Stream // each file under its hash
	results *hub.Stream // each document under hash, question and version
	rows    *hub.Stream // each Row under hash and version
	strikes *hub.Stream // how often a file was the end of its worker, under its hash
	workers *hub.Stream // who works, for as long as they say so
	trials  *hub.Stream // what became of settings, each part of a batch under its name
	queue   *hub.Queue  // files to be analysed
	tuning  *hub.Queue  // batches of settings to be tried
	objects *hub.Objects
	alarms  *hub.Objects // the snapshots of watch
	jobWait time.Duration
	now     func() time.Time
}

// workerLife is how long a worker is listed after it last said that it is there.
const workerLife = 30 * time.Second

// Open opens the fleet of a store, and makes what is not there.
func Open(ctx context.Context, h *hub.Hub) (*Store, error) {
	return open(ctx, h, jobWait)
}

func open(ctx context.Context, h *hub.Hub, wait time.Duration) (*Store, error) {
	st := &Store{hub: h, jobWait: wait, now: time.Now}
	stream := func(to **hub.Stream, name string, perSubject int64, maxAge time.Duration) error {
		s, err := h.Stream(ctx, hub.StreamOptions{Name: "ASHLAR_" + name, Prefix: "ashlar." + name, PerSubject: perSubject, MaxAge: maxAge})
		*to = s
		return err
	}
	if err := stream(&st.facts, "fleet", 1, 0); err != nil {
		return nil, err
	}
	if err := st.checkFormat(ctx); err != nil {
		return nil, err
	}
	err := errors.Join(stream(&st.files, "files", 1, 0), stream(&st.results, "results", 1, 0), stream(&st.rows, "rows", 1, 0),
		stream(&st.strikes, "strikes", 1, 0), stream(&st.workers, "workers", 1, workerLife), stream(&st.trials, "trials", 1, trialLife))
	if err != nil {
		return nil, err
	}
	if st.queue, err = h.Queue(ctx, hub.QueueOptions{Name: "ASHLAR_work", Prefix: "ashlar.work", Wait: wait}); err != nil {
		return nil, err
	}
	if st.tuning, err = h.Queue(ctx, hub.QueueOptions{Name: "ASHLAR_tune", Prefix: "ashlar.tune", Wait: wait}); err != nil {
		return nil, err
	}
	if st.objects, err = h.Objects(ctx, "ASHLAR_objects", 0); err != nil {
		return nil, err
	}
	st.alarms, err = watch.Snapshots(ctx, h)
	return st, err
}

// checkFormat refuses a store of a later version.
func (st *Store) checkFormat(ctx context.Context) error {
	const subject = "format"
	var found struct {
		Format int `json:"format"`
	}
	m, err := st.facts.Last(ctx, subject)
	if errors.Is(err, hub.ErrNone) {
		found.Format = format
		if err := create(ctx, st.facts, subject, found); err != nil && !errors.Is(err, hub.ErrMoved) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, &found); err != nil || found.Format < 1 {
		return errors.New("the store does not say of which version it is: choose another --dir or --hub")
	}
	if found.Format > format {
		return fmt.Errorf("the store was made by a newer ashlar (format %d, this one knows %d); update ashlar", found.Format, format)
	}
	return nil
}

// create stores a document under a subject that has none; the error is
// [hub.ErrMoved] if it has one.
func create(ctx context.Context, s *hub.Stream, subject string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, subject, data, 0)
	return err
}

// replace stores a document in place of what is there.
func replace(ctx context.Context, s *hub.Stream, subject string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return s.Put(ctx, subject, data)
}

// read returns the document of a subject, or [hub.ErrNone].
func read[T any](ctx context.Context, s *hub.Stream, subject string) (out T, err error) {
	m, err := s.Last(ctx, subject)
	if err == nil {
		err = json.Unmarshal(m.Data, &out)
	}
	return out, err
}

// File is what the fleet knows of a file without having read it. What nobody said
// is empty or nil; the file itself may say it then.
type File struct {
	Hash    string            `json:"hash"`
	Name    string            `json:"name"` // when it was added
	Bytes   int64             `json:"bytes"`
	Run     string            `json:"run,omitempty"`
	Attempt *int64            `json:"attempt,omitempty"`
	Rank    *int64            `json:"rank,omitempty"`
	World   *int64            `json:"world,omitempty"`
	Commit  string            `json:"commit,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	Host    string            `json:"host,omitempty"`
	AddedUS int64             `json:"added_us"`
	// Path is where the file is, if it was not copied; Alarm its name among the
	// snapshots of watch. If both are empty, it is an object under its hash.
	Path  string `json:"path,omitempty"`
	Alarm string `json:"alarm,omitempty"`
}

// file returns what is known of a file, or [hub.ErrNone].
func (st *Store) file(ctx context.Context, hash string) (*File, error) {
	f, err := read[File](ctx, st.files, hash)
	return &f, err
}

// enqueue has a file analysed.
func (st *Store) enqueue(ctx context.Context, hash string) error {
	return st.queue.Push(ctx, hash, []byte(versions()))
}
