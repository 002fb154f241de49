package alloc

// A course is how much memory a step of the program uses from its beginning to its end, so that the next step,
// which is most often like it, can tell how much it will still need.
type course struct {
	begun uint32 // blocks handed out before the step
	now   trail
	top   uint64   // the most bytes in use in this step
	past  [2]trail // the two steps before, the latest first
	told  int      // stretches of this step that homecoming has looked at
	moved int64    // what had been moved when there was nothing to bring home
}

// stretch is how many blocks are handed out in a stretch of a step; a step of more than mostStretches has no course.
const (
	stretch       = 64
	mostStretches = 1 << 16
)

// trail has the most bytes in use in each stretch of a step, wherever they lie; of a step that is over, the most up to and
// from each of them.
type trail struct {
	most     []uint64
	up, from []uint64
}

// note is called when a block was handed out.
func (c *course) note(served uint32, used uint64) {
	for i := int(served-c.begun) / stretch; len(c.now.most) <= i && i < mostStretches; {
		c.now.most = append(c.now.most, 0)
	}
	if last := len(c.now.most) - 1; last >= 0 {
		c.now.most[last] = max(c.now.most[last], used)
	}
	c.top = max(c.top, used)
}

// mark ends a step.
func (c *course) mark(served uint32) {
	t := c.now
	if len(t.most) == mostStretches {
		t.most = nil
	}
	c.now, c.past[1] = c.past[1], c.past[0]
	c.now.most = c.now.most[:0]
	t.up, t.from = append(t.up[:0], t.most...), append(t.from[:0], t.most...)
	for i := 1; i < len(t.up); i++ {
		t.up[i] = max(t.up[i], t.up[i-1])
		back := len(t.from) - 1 - i
		t.from[back] = max(t.from[back], t.from[back+1])
	}
	c.past[0] = t
	c.begun, c.top, c.told, c.moved = served, 0, 0, -1
}

// ahead returns the most that will be in use until the end of the step, if it goes on like the two before: as much more, where it
// has used more than they so far. ok is false if there were none.
func (c *course) ahead(used uint64) (most uint64, ok bool) {
	at := len(c.now.most) - 1
	most = used
	for _, p := range c.past {
		if len(p.up) == 0 || at < 0 {
			return 0, false
		}
		if at < len(p.from) {
			most = max(most, uint64(float64(p.from[at])*max(1, float64(c.top)/float64(max(p.up[at], 1)))))
		}
	}
	return most, true
}

// homecoming returns, at the beginning of a stretch of the step, how much of what lies in the host's memory has room on
// the device until the step's end: 0 if that is not worth a move. There is a spiller, and the lock is held.
func (a *Allocator) homecoming() (room uint64) {
	c := &a.course
	if a.elsewhere == a.withheld || len(c.now.most) == c.told || a.moved == c.moved || len(a.routes) != 0 {
		return 0
	}
	c.told = len(c.now.most)
	limit := a.limit
	if !a.limited {
		free, _, err := a.dev.MemInfo()
		if err != nil {
			return 0
		}
		limit = a.reserved + free
	}
	far := a.liveElsewhere()
	most, ok := c.ahead(a.inUse() + far)
	// Not all of the device's memory can be used to the last byte.
	limit -= min(limit, max(limit/16, leastSpace/4))
	if !ok || most > limit+far {
		return 0
	}
	if room = limit + far - most; room < min(far, leastSpace) {
		return 0
	}
	return room
}

// endRequest unlocks, tells the spiller if it has served the request, and lets memory come home if it is the time for it.
func (a *Allocator) endRequest() {
	s := a.spiller
	if s == nil {
		a.mu.Unlock()
		return
	}
	done := a.relief
	a.relief = relief{}
	room := a.homecoming()
	a.mu.Unlock()
	if done.size > 0 {
		s.Served(done.size, done.moved)
	}
	if room > 0 {
		a.bringHome(room)
	}
}

// bringHome asks the spiller, without the lock.
func (a *Allocator) bringHome(room uint64) {
	a.mu.Lock()
	s := a.spiller
	a.mu.Unlock()
	if s == nil || s.ComeHome(room) {
		return
	}
	a.mu.Lock()
	a.course.moved = a.moved // nothing could come, and nothing can until more has gone
	a.mu.Unlock()
}
