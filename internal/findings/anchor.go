package findings

import "slices"

// anchor returns the token with which windows begin, or -1: of the tokens that
// occur in each window, the one that comes first by the median of its places. The
// first window may hold set-up before its step, or lack its beginning; it must
// have the token only if firstToo.
func (s *sequence) anchor(windows []window, firstToo bool) int32 {
	first := windows[0]
	rest := windows[1:]
	if len(rest) == 0 {
		return -1
	}
	seen := s.rangesWith(len(rest), func(k int) (begin, end int) { return rest[k].begin, rest[k].end })
	if firstToo {
		present := make([]bool, s.number)
		for i := s.first(first.begin); i < s.first(first.end); i++ {
			if t := s.tokens[i]; t >= 0 {
				present[t] = true
			}
		}
		for t := range seen {
			if !present[t] {
				seen[t] = 0
			}
		}
	}
	places := make([]int, len(rest))
	best, place := int32(-1), 0
	for t, n := range seen {
		if int(n) < len(rest) || best >= 0 && place == 0 {
			continue
		}
		for k, w := range rest {
			begin, end := s.first(w.begin), s.first(w.end)
			if best >= 0 {
				end = min(end, begin+place) // further off it is not the one
			}
			at := begin
			for at < end && s.tokens[at] != int32(t) {
				at++
			}
			places[k] = at - begin
		}
		slices.Sort(places)
		if at := places[(len(places)-1)/2]; best < 0 || at < place {
			best, place = int32(t), at
		}
	}
	return best
}

// find returns the event of the first allocation with a token in a range of
// events, or -1.
func (s *sequence) find(token int32, begin, end int) int {
	for i := s.first(begin); i < s.first(end); i++ {
		if s.tokens[i] == token {
			return int(s.events[i])
		}
	}
	return -1
}

// firstFreed returns the event of the first allocation in a range of events
// that is freed within it: what comes before is set-up, which stays.
func (s *sequence) firstFreed(begin, end int) int {
	for i := s.first(begin); i < s.first(end); i++ {
		if s.gone(i) < int32(end) {
			return int(s.events[i])
		}
	}
	return -1
}

// closeSteps makes each step reach to the next one. The last step reaches to the
// end of the trace or, once it has everything that all others have, to the first
// allocation that no step before it made: then the loop is over and other work
// begins. Frees at the end of the program do not belong to the step.
func (s *sequence) closeSteps(steps []Step, end int) {
	n := len(steps)
	for i := range n - 1 {
		steps[i].End = steps[i+1].Begin
	}
	if n == 0 {
		return
	}
	last := &steps[n-1]
	last.End = end
	if n > 1 && !s.sized {
		last.End = s.somethingElse(steps)
	}
	last.End = s.teardown(steps)
}

// somethingElse returns where the last step is over and other work begins.
func (s *sequence) somethingElse(steps []Step) int {
	n := len(steps)
	last := steps[n-1]
	seen, always := s.recurring(steps[:n-1])
	missing := 0
	for _, a := range always {
		if a {
			missing++
		}
	}
	for i := s.first(last.Begin); i < s.first(last.End); i++ {
		t := s.tokens[i]
		if t < 0 {
			continue
		}
		if always[t] {
			always[t] = false
			missing--
		}
		if missing == 0 && !seen[t] {
			return int(s.events[i])
		}
	}
	return last.End
}

// teardown returns where the program gives up its memory: the first free of
// something older than the last step after its last allocation, if most of what
// was set up goes with it. Otherwise it is the step's end.
func (s *sequence) teardown(steps []Step) int {
	step := steps[len(steps)-1]
	from, end := step.Begin, step.End
	if i := s.first(end); i > 0 {
		from = max(from, int(s.events[i-1]))
	}
	first := end
	var had, gone uint64 // of set-up
	for b := range s.lives.all() {
		if int(b.born) >= step.Begin {
			break
		}
		if int(b.freed) <= from {
			continue
		}
		ends := int(b.freed) < end
		if ends {
			first = min(first, int(b.freed))
		}
		if int(b.born) < steps[0].Begin {
			had += b.size
			if ends {
				gone += b.size
			}
		}
	}
	if 2*gone < had {
		return end
	}
	return first
}

// rangesWith counts for each token the ranges of events in which it occurs.
func (s *sequence) rangesWith(ranges int, of func(k int) (begin, end int)) []int32 {
	count := make([]int32, s.number)
	last := make([]int32, s.number) // the last range in which it was seen, plus one
	for k := range ranges {
		begin, end := of(k)
		for i := s.first(begin); i < s.first(end); i++ {
			if t := s.tokens[i]; t >= 0 && last[t] != int32(k+1) {
				last[t] = int32(k + 1)
				count[t]++
			}
		}
	}
	return count
}

// recurring reports for each token whether it occurs in some of the steps, and
// whether in all.
func (s *sequence) recurring(steps []Step) (seen, always []bool) {
	count := s.rangesWith(len(steps), func(k int) (begin, end int) { return steps[k].Begin, steps[k].End })
	seen, always = make([]bool, s.number), make([]bool, s.number)
	for t, n := range count {
		seen[t] = n > 0
		always[t] = n > 0 && int(n) == len(steps)
	}
	return seen, always
}

// completeLast reports whether the last step has everything that all others
// have.
func (s *sequence) completeLast(steps []Step) bool {
	n := len(steps)
	if n < 2 {
		return false
	}
	_, always := s.recurring(steps[:n-1])
	last := steps[n-1]
	for i := s.first(last.Begin); i < s.first(last.End); i++ {
		if t := s.tokens[i]; t >= 0 {
			always[t] = false
		}
	}
	return !slices.Contains(always, true)
}
