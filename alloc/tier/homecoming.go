package tier

import "github.com/ashlar-mem/ashlar/alloc"

// returns are what came home in the middle of steps. If it had to go again in the same step, nothing does for some steps,
// and then for twice as many.
type returns struct {
	now   bool   // something did in this step
	wait  uint64 // steps in which nothing will
	pause uint64 // how many these were last time
}

// gone notes that memory goes to the host.
func (r *returns) gone() {
	if r.now {
		r.now = false
		r.pause = min(max(1, 2*r.pause), mostPause)
		r.wait = r.pause + 1 // with this one
	}
}

// mark ends a step.
func (r *returns) mark() {
	r.now = false
	r.wait -= min(r.wait, 1)
}

// ComeHome brings back what is not cold, the hottest first: the backward pass comes to what was moved of the forward pass, and its
// kernels read it again and again.
func (s spiller) ComeHome(room uint64) bool {
	sp, store := s.sp, s.sp.store
	if store.options.Alone == nil || !store.options.Alone() || !store.moving.TryLock() {
		return true
	}
	defer store.moving.Unlock()
	if sp.returns.wait > 0 {
		return false
	}
	var all, some uint64
	sp.attached().Placer().Look(func(pl *alloc.Placement) {
		pages := sp.warm(pl)
		for _, p := range pages {
			all += p.size
		}
		_, some = within(pages, room)
	})
	if all < quantum {
		return false // to wait for the device would take longer
	}
	if some < min(all, mostQuantum) {
		return true // later, when there is more room
	}
	r, err := sp.comeBack(room)
	store.lose(err)
	sp.returns.now = sp.returns.now || r.In > 0
	return err == nil && r.In > 0
}

// warm lists the pages on the host that are not cold, hottest first.
func (sp *Space) warm(pl *alloc.Placement) []*page {
	return sp.hottest(pl, func(c class) bool { return c != named && c != settled })
}

// comeBack brings as many of them home as have room. The caller holds moving.
func (sp *Space) comeBack(room uint64) (Report, error) {
	var r Report
	sp.store.sweep()
	err := sp.store.hold(sp, func(pl *alloc.Placement) error { return sp.store.bringIn(pl, sp, sp.warm(pl), room, &r) })
	return r, err
}
