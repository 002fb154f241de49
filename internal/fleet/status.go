package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Status is how the fleet is.
type Status struct {
	Files    int   `json:"files"`
	Analysed int   `json:"analysed"` // have results of this version; those that failed not included
	Outdated int   `json:"outdated"` // have results of an earlier one: ashlar fleet redo renews them
	Failed   int   `json:"failed"`   // could not be analysed, those set aside included
	Waiting  int   `json:"waiting"`  // in the queue
	Taken    int   `json:"taken"`    // by a worker
	Damaged  int   `json:"damaged"`  // descriptions and rows in the store that cannot be read
	Bytes    int64 `json:"bytes"`    // of the files that were copied
	Disk     int64 `json:"disk_bytes"`

	PerMinute int       `json:"per_minute"` // analysed in the last minute
	Workers   []Worker  `json:"workers"`
	Problems  []Problem `json:"problems"` // files without an answer
}

// Problem is a file that has no answers.
type Problem struct {
	Hash  string `json:"hash"`
	File  string `json:"file"`
	Aside bool   `json:"set_aside"`
	Error string `json:"error"`
}

func (x *Index) status(ctx context.Context) (*Status, error) {
	s := &Status{Workers: []Worker{}, Problems: []Problem{}}
	x.count(s, time.Now())
	queue, err := x.store.queue.State(ctx)
	if err != nil {
		return nil, err
	}
	s.Waiting, s.Taken = queue.Waiting, queue.Taken
	disk, err := x.store.disk(ctx)
	if err != nil {
		return nil, err
	}
	s.Disk = int64(disk)
	err = x.store.workers.Each(ctx, 0, func(m hub.Message) error {
		var w Worker
		if err := json.Unmarshal(m.Data, &w); err == nil {
			s.Workers = append(s.Workers, w)
		}
		return nil
	})
	slices.SortFunc(s.Workers, func(a, b Worker) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID)) })
	return s, err
}

// count counts what is in memory.
func (x *Index) count(s *Status, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.Files, s.Damaged = len(x.files), x.lostFiles+x.lostRows
	for hash, f := range x.files {
		if f.Path == "" {
			s.Bytes += f.Bytes
		}
		row, ok := x.rows[hash]
		switch {
		case !ok:
			continue
		case row.versions != versions():
			s.Outdated++
		case row.Error == "":
			s.Analysed++
		}
		if now.Sub(row.time) < time.Minute {
			s.PerMinute++
		}
		if row.Error != "" {
			s.Failed++
			s.Problems = append(s.Problems, Problem{hash, f.Name, row.Aside, row.Error})
		}
	}
	slices.SortFunc(s.Problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Hash, b.Hash)) })
}

// disk is how much the fleet has stored.
func (st *Store) disk(ctx context.Context) (uint64, error) {
	total, err := st.objects.Bytes(ctx)
	for _, s := range []*hub.Stream{st.files, st.results, st.rows, st.strikes} {
		if err != nil {
			return 0, err
		}
		var state hub.State
		state, err = s.State(ctx)
		total += state.Bytes
	}
	return total, err
}
