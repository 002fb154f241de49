package sim

import "time"

// What a request below a page takes in a page that is there already, measured by
// tools/bench/gpu/nocache.py on an H200.
const (
	smallMalloc = 3500 * time.Nanosecond
	smallFree   = 3 * time.Microsecond
	smallUnit   = 512
)

// SmallPages estimates how long the driver takes for the requests of a program
// without a cache. Those below a page of 2 MiB share pages: the first of a page
// makes it, the last that goes gives it back, and the others cost little. Where
// in a page a request lies is not looked at.
type SmallPages struct {
	// Clock is that of [Config].
	Clock func() (us int64, known bool)

	pauses pauses
	room   maxTree // page -> free bytes; 0 where there is no page
	live   []int32 // page -> requests in it
	free   []int32 // numbers of pages that were given back
}

// Malloc returns the page of a request, or -1 for one that has its own memory,
// and the time of the call.
func (s *SmallPages) Malloc(size uint64) (int32, time.Duration) {
	if size >= page {
		return -1, s.driver(MallocTime(size))
	}
	size = roundUp(max(size, 1), smallUnit)
	if i := s.room.first(size); i >= 0 {
		s.room.set(i, s.room.at(i)-size)
		s.live[i]++
		return int32(i), smallMalloc
	}
	i := int32(len(s.live))
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.live = append(s.live, 0)
	}
	s.live[i] = 1
	s.room.set(int(i), page-size)
	return i, smallMalloc + s.driver(MallocTime(page))
}

// Free returns the time in which a request is given back.
func (s *SmallPages) Free(i int32, size uint64) time.Duration {
	if i < 0 {
		return s.driver(FreeTime(size))
	}
	if s.live[i]--; s.live[i] > 0 {
		s.room.set(int(i), s.room.at(int(i))+roundUp(max(size, 1), smallUnit))
		return smallFree
	}
	s.room.set(int(i), 0)
	s.free = append(s.free, i)
	return smallFree + s.driver(FreeTime(page))
}

// driver returns how long a call takes that reaches the driver.
func (s *SmallPages) driver(took time.Duration) time.Duration { return s.pauses.call(s.Clock, took) }
