package bisect

import (
	"errors"
	"testing"
)

// from is a test that n bytes pass from border on; it counts how often it is asked.
func from(border uint64, asked *int) Test {
	return func(n uint64) (bool, error) {
		*asked++
		return n >= border, nil
	}
}

func TestBorder(t *testing.T) {
	for _, tt := range []struct {
		low, high, step, border, want uint64
	}{
		{0, 100, 1, 37, 37},
		{37, 100, 1, 37, 37},
		{1, 37, 1, 37, 37},
		{37, 37, 1, 37, 37},
		{0, 100, 1, 0, 0},
		{50, 100, 1, 37, 50}, // the bound from below counts
		{0, 1000, 16, 37, 48},
		{0, 1000, 16, 48, 48},
		{30, 999, 16, 990, 992},
		{17, 17, 16, 20, 32},
		{1 << 40, 1 << 41, 2 << 20, 1<<40 + 1, 1<<40 + 2<<20},
	} {
		asked := 0
		got, err := New(tt.low, tt.high, tt.step).Halve(from(tt.border, &asked))
		if err != nil || got != tt.want {
			t.Errorf("%+v: Halve found %d, %v", tt, got, err)
		}
		if asked > 41 {
			t.Errorf("%+v: Halve asked %d times", tt, asked)
		}
		for _, high := range []uint64{tt.high, 0} {
			got, err := New(tt.low, high, tt.step).Climb(from(tt.border, &asked))
			if err != nil || got != tt.want {
				t.Errorf("%+v: Climb to %d found %d, %v", tt, high, got, err)
			}
		}
	}
}

// Where answers go to and fro the result is still a border.
func TestNotMonotone(t *testing.T) {
	const step = 4
	for seed := range uint64(500) {
		passes := func(n uint64) bool { return n >= 4000 || (n/step*0x9E3779B97F4A7C15+seed*0xBF58476D1CE4E5B9)>>62 == 0 }
		test := func(n uint64) (bool, error) { return passes(n), nil }
		for name, find := range map[string]func(*Range, Test) (uint64, error){"Halve": (*Range).Halve, "Climb": (*Range).Climb} {
			r := New(100, 4000, step)
			got, err := find(r, test)
			if err != nil || got < 100 || !passes(got) || got > 100 && passes(got-step) {
				t.Errorf("%s, seed %d: %d is no border, %v", name, seed, got, err)
			}
		}
	}
}

// A test that learns more than its answer is asked less often.
func TestNarrow(t *testing.T) {
	r := New(0, 1<<40, 1)
	asked := 0
	got, err := r.Halve(func(n uint64) (bool, error) {
		asked++
		if n < 1000 {
			r.Low = 1000
			return false, nil
		}
		r.High = 1000
		return true, nil
	})
	if err != nil || got != 1000 || asked != 2 {
		t.Errorf("%d after %d tests, %v", got, asked, err)
	}
}

func TestErrors(t *testing.T) {
	failed := errors.New("failed")
	test := func(uint64) (bool, error) { return true, failed }
	if _, err := New(1, 10, 1).Halve(test); !errors.Is(err, failed) {
		t.Errorf("Halve: %v", err)
	}
	if _, err := New(1, 0, 1).Climb(test); !errors.Is(err, failed) {
		t.Errorf("Climb: %v", err)
	}
	never := func(uint64) (bool, error) { return false, nil }
	if n, err := New(1, 0, 2<<20).Climb(never); err == nil {
		t.Errorf("%d where nothing suffices", n)
	}
}
