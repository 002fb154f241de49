package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// How many rounds there are, and when they end.
func TestRounds(t *testing.T) {
	p := pace{warm: 2, least: 3, most: 10, budget: 50 * ms}
	for _, tt := range []struct {
		name  string
		takes time.Duration // of a round
		end   time.Duration // of the whole bench
		want  int
	}{
		{"as many as fill the budget", 8 * ms, time.Hour, 7},
		{"never more than the most", ms, time.Hour, 10},
		{"never fewer than the least", 200 * ms, time.Hour, 3},
		{"one when the time of all is over", 200 * ms, 100 * ms, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := &timer{pace: p, ctx: t.Context(), end: time.Now().Add(tt.end)}
				calls := 0
				all, err := tm.rounds(2, func(took []time.Duration) error {
					calls++
					time.Sleep(tt.takes)
					took[0], took[1] = time.Duration(calls), -time.Duration(calls)
					return nil
				})
				if err != nil || len(all) != 2 || len(all[0]) != tt.want || calls != tt.want+p.warm {
					t.Fatalf("%v, %v, %d calls", all, err, calls)
				}
				for i := range all[0] {
					if first := time.Duration(i + 1 + p.warm); all[0][i] != first || all[1][i] != -first {
						t.Errorf("round %d has %v and %v", i, all[0][i], all[1][i])
					}
				}
			})
		})
	}
}

func TestRoundsEnd(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	tm := &timer{pace: paceOf(true), ctx: ctx, end: time.Now().Add(time.Hour)}
	if _, err := tm.rounds(1, func([]time.Duration) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error of a round: %v", err)
	}
	if _, _, err := tm.many(0, func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error of a call: %v", err)
	}
	calls := 0
	_, err := tm.rounds(1, func([]time.Duration) error {
		calls++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("interrupted: %v after %d calls", err, calls)
	}
}

// A round of short calls is as long as it should be, and the time of one of
// them comes out.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := &timer{pace: paceOf(false), ctx: t.Context(), end: time.Now().Add(time.Hour)}
		samples, n, err := tm.many(0, func(n int) error {
			time.Sleep(time.Duration(n) * time.Microsecond)
			return nil
		})
		if err != nil || n != 8192 || len(samples) != 22 {
			t.Fatalf("%d rounds of %d, %v", len(samples), n, err)
		}
		r := Row{PerRound: n}
		r.summarise(samples)
		if r.Median != 1000 || r.Least != 1000 || r.Most != 1000 || r.Rounds != 22 {
			t.Errorf("%+v", r)
		}
	})
}

func TestSummarise(t *testing.T) {
	for _, tt := range []struct {
		samples                        []time.Duration
		least, low, median, high, most float64
	}{
		{[]time.Duration{7}, 7, 7, 7, 7, 7},
		{[]time.Duration{4, 2}, 2, 2.5, 3, 3.5, 4},
		{[]time.Duration{50, 10, 30, 40, 20}, 10, 20, 30, 40, 50},
		{[]time.Duration{1000, 1, 2, 3, 4, 5, 6, 7}, 1, 2.75, 4.5, 6.25, 1000},
	} {
		r := Row{PerRound: 1}
		r.summarise(tt.samples)
		if got := (Row{Least: tt.least, Low: tt.low, Median: tt.median, High: tt.high, Most: tt.most, Rounds: len(tt.samples), PerRound: 1}); r != got {
			t.Errorf("%v: %+v", tt.samples, r)
		}
	}
}
