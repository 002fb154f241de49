package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// forwarder copies what is stored here to another hub, whenever that can be
// reached. Nothing is told to it: it compares what both have.
type forwarder struct {
	from     *Server
	open     func(context.Context) (*hub.Hub, error)
	hub      *hub.Hub
	to       *store
	sessions map[string]*forwarded
	alarm    uint64 // the sequence number of the next alarm, here
}

// forwarded is how far a session is at the other hub.
type forwarded struct {
	hello   uint64 // the sequence number of the hello that it has, here
	journal place
	levels  [len(levels)]place
	next    [len(levels)]uint64 // the sequence number of the next block, here
}

// forwardEvery is how often the hubs are compared.
const forwardEvery = time.Second

// Forward copies to another hub until the context ends.
func (s *Server) Forward(ctx context.Context, open func(context.Context) (*hub.Hub, error)) {
	f := &forwarder{from: s, open: open}
	defer f.reset()
	said := false
	for ctx.Err() == nil {
		err := f.round(ctx)
		if err != nil && ctx.Err() == nil {
			if !said {
				s.opts.Log("the hub cannot be reached; what comes is stored here until it can: " + err.Error())
			}
			said = true
			f.reset()
		} else if said {
			said = false
			s.opts.Log("the hub has everything again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(forwardEvery):
		}
	}
}

// reset forgets what the other hub is believed to have.
func (f *forwarder) reset() {
	if f.hub != nil {
		f.hub.Close()
	}
	f.hub, f.to, f.sessions, f.alarm = nil, nil, map[string]*forwarded{}, 0
}

// round copies everything that is missing now.
func (f *forwarder) round(ctx context.Context) (err error) {
	if f.to == nil {
		f.reset()
		if f.hub, err = f.open(ctx); err != nil {
			return err
		}
		if f.to, err = openStore(ctx, f.hub, f.from.opts.Keep); err != nil {
			return err
		}
	}
	ids, err := f.from.store.sessions.Subjects(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := f.session(ctx, id); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
	}
	return f.alarms(ctx)
}

func (f *forwarder) session(ctx context.Context, id string) (err error) {
	one := f.sessions[id]
	if one == nil {
		one = &forwarded{}
		for i, s := range f.to.levels {
			if one.levels[i], err = f.to.place(ctx, s, id); err != nil {
				return err
			}
		}
		if one.journal, err = f.to.place(ctx, f.to.journal, id); err != nil {
			return err
		}
		f.sessions[id] = one
	}
	if err := f.hello(ctx, id, one); err != nil {
		return err
	}
	fine := one.levels[0]
	for i := range levels {
		if err := f.blocks(ctx, id, one, i); err != nil {
			return err
		}
	}
	if err := f.journal(ctx, id, one); err != nil {
		return err
	}
	if one.levels[0] != fine {
		return f.trim(ctx, id, one)
	}
	return nil
}

func (f *forwarder) hello(ctx context.Context, id string, one *forwarded) error {
	m, err := f.from.store.sessions.Last(ctx, id)
	if errors.Is(err, hub.ErrNone) || err == nil && m.Seq == one.hello {
		return nil
	}
	if err == nil {
		err = f.to.sessions.Put(ctx, id, m.Data)
	}
	if err == nil {
		one.hello = m.Seq
	}
	return err
}

// blocks copies those of a level, and lets old ones go as here.
func (f *forwarder) blocks(ctx context.Context, id string, one *forwarded, i int) error {
	for {
		m, err := f.from.store.levels[i].From(ctx, id, one.next[i])
		if errors.Is(err, hub.ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		h, _, err := readHead(m.Data)
		if err == nil && h.last > one.levels[i].through {
			seq, err := f.to.levels[i].Append(ctx, id, m.Data, one.levels[i].last)
			if err != nil {
				return err
			}
			one.levels[i] = place{seq, h.last}
			if i > 0 {
				if err := f.to.expire(ctx, id, i-1, f.from.opts.Now()); err != nil {
					return err
				}
			}
		}
		one.next[i] = m.Seq + 1
	}
}

// journal copies what is in no block yet.
func (f *forwarder) journal(ctx context.Context, id string, one *forwarded) error {
	for m, err := range f.from.store.journal.All(ctx, id) {
		if err != nil {
			return err
		}
		h, _, err := readHead(m.Data)
		if err != nil || h.last <= max(one.journal.through, one.levels[0].through) {
			continue
		}
		seq, err := f.to.journal.Append(ctx, id, m.Data, one.journal.last)
		if err != nil {
			return err
		}
		one.journal = place{seq, h.last}
	}
	return nil
}

// trim removes from the other journal what has become a block.
func (f *forwarder) trim(ctx context.Context, id string, one *forwarded) error {
	for m, err := range f.to.journal.All(ctx, id) {
		if err != nil {
			return err
		}
		h, _, err := readHead(m.Data)
		if err == nil && h.last > one.levels[0].through {
			return nil
		}
		if err := f.to.journal.Purge(ctx, id, m.Seq+1); err != nil {
			return err
		}
		if m.Seq == one.journal.last {
			one.journal.last = 0 // the journal is empty
		}
	}
	return nil
}

// alarms copies alarms, and the snapshots that they name.
func (f *forwarder) alarms(ctx context.Context) error {
	for {
		m, err := f.from.store.alarms.From(ctx, "*", f.alarm)
		if errors.Is(err, hub.ErrNone) {
			break
		}
		if err != nil {
			return err
		}
		if err := f.to.alarms.Put(ctx, m.Subject, m.Data); err != nil {
			return err
		}
		f.alarm = m.Seq + 1
	}
	return f.snapshots(ctx)
}

func (f *forwarder) snapshots(ctx context.Context) error {
	here, err := f.from.store.snapshots.List(ctx)
	if err != nil || len(here) == 0 {
		return err
	}
	there, err := f.to.snapshots.List(ctx)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, o := range there {
		has[o.Name] = true
	}
	for _, o := range here {
		if has[o.Name] {
			continue
		}
		r, err := f.from.store.snapshots.Get(ctx, o.Name)
		if err != nil {
			return err
		}
		if err := f.to.snapshots.Put(ctx, o.Name, r); err != nil {
			return err
		}
	}
	return nil
}
