package detect

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/proc"
)

// A process that grows by 1 MiB each second.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rss := func() (uint64, error) { return 100<<20 + uint64(time.Since(start).Seconds()*(1<<20)), nil }
		g, err := watch(t.Context(), 30*time.Second, rss)
		if err != nil {
			t.Fatal(err)
		}
		if g.Samples < 299 || g.FirstRSSBytes != 100<<20 || g.LastRSSBytes < 129<<20 || g.MinRSSBytes != 100<<20 || g.MaxRSSBytes != g.LastRSSBytes || g.Ended {
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
		rss := func() (uint64, error) {
			if n++; n > 5 {
				return 0, proc.ErrNoProcess
			}
			return uint64(10 - n), nil
		}
		g, err := watch(t.Context(), time.Minute, rss)
		if err != nil || !g.Ended || g.Samples != 5 || g.BytesPerHour >= 0 || g.MinRSSBytes != 5 || g.MaxRSSBytes != 9 {
			t.Errorf("%+v, %v", g, err)
		}
		if _, err := watch(t.Context(), time.Minute, rss); !errors.Is(err, proc.ErrNoProcess) {
			t.Error(err)
		}

		// The user has seen enough: what is known is the answer.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g, err = watch(ctx, time.Minute, func() (uint64, error) { return 7, nil })
		if err != nil || g.Samples < 10 || g.Ended || g.BytesPerHour != 0 {
			t.Errorf("%+v, %v", g, err)
		}
	})
}
