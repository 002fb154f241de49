package fleet

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How often a server looks for files that nobody analyses and for what is to be
// removed, and how often for objects that were never completed.
const (
	tidyInterval  = time.Minute
	sweepInterval = time.Hour
)

// Serve answers questions and analyses files until the context ends. ready is
// called with what it answers from; it may be nil.
func (st *Store) Serve(ctx context.Context, o WorkOptions, keep Retention, ready func(*Index) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x, err := NewIndex(ctx, st)
	if err != nil {
		return err
	}
	stop, err := st.hub.Answer(askSubject, func(question []byte) []byte { return x.reply(ctx, question) })
	if err != nil {
		return err
	}
	defer stop()
	if ready != nil {
		if err := ready(x); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		var swept time.Time
		for ctx.Err() == nil {
			err := st.tidy(ctx, x, keep)
			if err == nil && time.Since(swept) > sweepInterval {
				swept = time.Now()
				_, err = st.objects.Sweep(ctx, sweepInterval)
				err = errors.Join(err, st.dropReplies(ctx, sweepInterval))
			}
			if err != nil && ctx.Err() == nil {
				o.Log("the fleet cannot be tidied: " + err.Error())
			}
			sleep(ctx, tidyInterval)
		}
	})
	defer cancel()
	if o.Jobs == 0 {
		<-ctx.Done()
		return nil
	}
	return st.Work(ctx, o)
}

// tidy queues files that whoever added them did not come to queue, and removes
// what is too old or too much.
func (st *Store) tidy(ctx context.Context, x *Index, keep Retention) error {
	if err := x.Refresh(ctx); err != nil {
		return err
	}
	for _, hash := range x.missing() {
		if err := st.enqueue(ctx, hash); err != nil {
			return err
		}
	}
	return st.retain(ctx, x, keep)
}

// missing returns the files that have no row of any version.
func (x *Index) missing() (hashes []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for hash := range x.files {
		if _, ok := x.rows[hash]; !ok {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
