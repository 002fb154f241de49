package findings

// PeakEvent is the event after which most memory is active; -1 if it is before
// the first one.
func (a *Analysis) PeakEvent() int {
	peak, at := a.lives.before, -1
	for i, live := range a.lives.live {
		if live > peak {
			peak, at = live, i
		}
	}
	return at
}

// LiveBefore is what is active before an event.
func (a *Analysis) LiveBefore(event int) uint64 { return a.lives.at(event) }
