package watch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// follower takes in what other servers store in a cluster: the jobs that send to
// them. Alarms are evaluated for these as well, by the rules of this server.
type follower struct {
	s *Server
	// The sequence numbers of the next message in each stream.
	hello, alarm, journal, fine uint64
}

// newFollower begins behind what is stored: that is loaded.
func (s *Server) newFollower(ctx context.Context) (*follower, error) {
	f := &follower{s: s}
	for _, one := range []struct {
		stream *hub.Stream
		next   *uint64
	}{{s.store.sessions, &f.hello}, {s.store.alarms, &f.alarm}, {s.store.journal, &f.journal}, {s.store.levels[0], &f.fine}} {
		st, err := one.stream.State(ctx)
		if err != nil {
			return nil, err
		}
		*one.next = st.Last + 1
	}
	return f, nil
}

// round takes in what has come since the last one. Blocks come before the journal:
// what a forwarder could not send for a while comes in blocks alone.
func (f *follower) round(ctx context.Context) error {
	st := f.s.store
	return errors.Join(
		f.each(ctx, st.sessions, &f.hello, f.takeHello),
		f.each(ctx, st.alarms, &f.alarm, f.takeAlarm),
		f.each(ctx, st.levels[0], &f.fine, f.takeRows),
		f.each(ctx, st.journal, &f.journal, f.takeRows),
	)
}

func (f *follower) each(ctx context.Context, s *hub.Stream, next *uint64, take func(context.Context, hub.Message) error) error {
	for m, err := range s.AllFrom(ctx, "*", *next) {
		if err == nil {
			err = take(ctx, m)
		}
		if err != nil {
			return err
		}
		*next = m.Seq + 1
	}
	return nil
}

// takeHello notes a session of another server, and its end.
func (f *follower) takeHello(ctx context.Context, m hub.Message) error {
	var h Hello
	if json.Unmarshal(m.Data, &h) != nil {
		return nil // of no use to anybody
	}
	one, err := f.s.session(ctx, m.Subject)
	if errors.Is(err, errUnknown) {
		return nil // gone already
	}
	if err != nil {
		return err
	}
	f.s.mu.Lock()
	var over []*Alarm
	if !one.mine {
		one.hello = h
		if h.Ended {
			f.s.engine.forget(h.Session)
			over = f.s.clearAll(h.Session, h.Run, f.s.opts.Now())
		}
	}
	f.s.mu.Unlock()
	for _, a := range over {
		f.s.saveAlarm(ctx, a)
	}
	return nil
}

// takeAlarm notes an alarm of another server. What was raised here as well, from
// the same sample, is that one.
func (f *follower) takeAlarm(_ context.Context, m hub.Message) error {
	a := new(Alarm)
	if json.Unmarshal(m.Data, a) != nil {
		return nil
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if one := f.s.sessions[a.Session]; one == nil || !one.mine && !a.AtHub {
		f.s.alarms[m.Subject] = a
	}
	return nil
}

// takeRows lets the rows of a message count that are new.
func (f *follower) takeRows(ctx context.Context, m hub.Message) error {
	one, err := f.s.session(ctx, m.Subject)
	if errors.Is(err, errUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	h, spans, err := decode(m.Data)
	if err != nil {
		return nil // damaged: one block less
	}
	slices.SortStableFunc(spans, func(a, b span) int { return int(a.V[Seq] - b.V[Seq]) })
	now := f.s.opts.Now()
	var changes []change
	f.s.mu.Lock()
	if !one.mine && h.last > one.stored {
		for i := range spans {
			if spans[i].V[Seq] > one.stored {
				changes = append(changes, f.s.take(one, spans[i].Row, now)...)
			}
		}
		one.stored = h.last
	}
	f.s.mu.Unlock()
	f.s.act(ctx, changes)
	return nil
}

// follow reads the sessions that were seen lately, and returns what takes in what
// other servers store: in a cluster there may be some.
func (s *Server) follow(ctx context.Context) func(context.Context) {
	var f *follower
	said := false
	round := func(ctx context.Context) error {
		if f != nil {
			return f.round(ctx)
		}
		next, err := s.newFollower(ctx)
		if err != nil {
			return err
		}
		s.Load(ctx, recent)
		f = next
		return nil
	}
	if s.store.hub.Local() {
		s.Load(ctx, recent)
		round = func(context.Context) error { return nil }
	}
	tell := func(ctx context.Context) {
		err := round(ctx)
		if err != nil && !said && ctx.Err() == nil {
			s.opts.Log("what other servers forward is not seen: " + err.Error())
		}
		said = err != nil
	}
	tell(ctx)
	return tell
}
