package detect

import (
	"context"
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/proc"
)

// Growth is how the RSS of a process changed while it was watched.
type Growth struct {
	Seconds       float64 `json:"watched_s"`
	Samples       int     `json:"samples"`
	FirstRSSBytes uint64  `json:"first_rss_bytes"`
	LastRSSBytes  uint64  `json:"last_rss_bytes"`
	MinRSSBytes   uint64  `json:"min_rss_bytes"`
	MaxRSSBytes   uint64  `json:"max_rss_bytes"`
	// BytesPerHour is the slope of the straight line that fits the samples
	// best.
	BytesPerHour float64 `json:"rss_bytes_per_hour"`
	// Ended tells that the process ended before the time was over.
	Ended bool `json:"ended"`
}

// growthEvery is the distance of samples: ten a second cost next to nothing.
const growthEvery = 100 * time.Millisecond

// Watch samples a process for some time. It returns what it has when the
// context ends or the process does.
func Watch(ctx context.Context, pid int, d time.Duration) (*Growth, error) {
	sampler, err := proc.NewSamplerOf(pid)
	if err != nil {
		return nil, err
	}
	defer sampler.Close()
	return watch(ctx, d, func() (uint64, error) {
		s, err := sampler.Sample()
		return s.RSSBytes, err
	})
}

func watch(ctx context.Context, d time.Duration, rss func() (uint64, error)) (*Growth, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	ticker := time.NewTicker(growthEvery)
	defer ticker.Stop()
	var g Growth
	var line slope
	start := time.Now()
	for {
		bytes, err := rss()
		if errors.Is(err, proc.ErrNoProcess) && g.Samples > 0 {
			g.Ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		g.Seconds = time.Since(start).Seconds()
		g.add(bytes)
		line.add(g.Seconds, float64(bytes))
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	g.BytesPerHour = line.value() * 3600
	return &g, nil
}

func (g *Growth) add(rss uint64) {
	if g.Samples == 0 {
		g.FirstRSSBytes, g.MinRSSBytes = rss, rss
	}
	g.Samples++
	g.LastRSSBytes = rss
	g.MinRSSBytes, g.MaxRSSBytes = min(g.MinRSSBytes, rss), max(g.MaxRSSBytes, rss)
}

// slope is that of the line of least squares, summed up as samples come.
type slope struct {
	n, meanX, meanY, xx, xy float64
}

func (s *slope) add(x, y float64) {
	s.n++
	dx := x - s.meanX
	s.meanX += dx / s.n
	s.meanY += (y - s.meanY) / s.n
	s.xx += dx * (x - s.meanX)
	s.xy += dx * (y - s.meanY)
}

func (s *slope) value() float64 {
	if s.xx == 0 {
		return 0
	}
	return s.xy / s.xx
}
