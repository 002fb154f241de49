package detect

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// A process that grows by 1 MiB each second.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		read := func() (reading, error) {
			return reading{100<<20 + uint64(time.Since(start).Seconds()*(1<<20)), "program"}, nil
		}
		g, err := watch(t.Context(), 30*time.Second, "program", read)
		if err != nil {
			t.Fatal(err)
		}
		if g.Samples < 299 || g.FirstRSSBytes != 100<<20 || g.LastRSSBytes < 129<<20 || g.MinRSSBytes != 100<<20 || g.MaxRSSBytes != g.LastRSSBytes || g.Ended || g.Execs != 0 {
			t.Errorf("%+v", g)
		}
		if slope := g.BytesPerHour / 3600; math.Abs(slope-1<<20) > 10 {
			t.Errorf("%f bytes a second", slope)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		read := func() (reading, error) {
			if n++; n > 5 {
				return reading{}, proc.ErrNoProcess
			}
			return reading{rss: uint64(10 - n)}, nil
		}
		g, err := watch(t.Context(), time.Minute, "", read)
		if err != nil || !g.Ended || g.Samples != 5 || g.BytesPerHour >= 0 || g.MinRSSBytes != 5 || g.MaxRSSBytes != 9 {
			t.Errorf("%+v, %v", g, err)
		}
		if _, err := watch(t.Context(), time.Minute, "", read); !errors.Is(err, proc.ErrNoProcess) {
			t.Error(err)
		}

		// The user has seen enough: what is known is the answer.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g, err = watch(ctx, time.Minute, "", func() (reading, error) { return reading{rss: 7}, nil })
		if err != nil || g.Samples < 10 || g.Ended || g.BytesPerHour != 0 {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// What a process held before it began to run another program does not count.
func TestWatchExec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		read := func() (reading, error) {
			switch d := time.Since(start); {
			case d < time.Second:
				return reading{500 << 20, "shell"}, nil
			case d < 2*time.Second:
				return reading{300 << 20, "launcher"}, nil
			case d < 3*time.Second:
				return reading{20<<20 + uint64(d.Seconds()*(1<<20)), "service"}, nil
			}
			return reading{30 << 20, ""}, nil // it could not be told
		}
		g, err := watch(t.Context(), 4*time.Second-50*time.Millisecond, "shell", read)
		if err != nil || g.Execs != 2 || g.Samples < 19 || g.Samples > 20 || g.FirstRSSBytes != 22<<20 || g.MaxRSSBytes != 30<<20 || g.Seconds < 1.8 || g.Seconds > 2 {
			t.Errorf("%+v, %v", g, err)
		}
		// It was another program already when watching began.
		start = time.Now().Add(-2500 * time.Millisecond)
		if g, err = watch(t.Context(), 300*time.Millisecond, "shell", read); err != nil || g.Execs != 1 {
			t.Errorf("%+v, %v", g, err)
		}
	})
}
