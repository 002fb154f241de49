package playground

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What the engine refuses is told, and the game goes on.
func TestPoolsRefused(t *testing.T) {
	for _, tt := range []struct{ lines, want string }{
		{"pool p\nend p", "Nothing happens: the engine refuses: "},
		{"pool p\nbegin p\nclose p", "Nothing happens: the engine refuses: "},
	} {
		m := play(t, split(tt.lines), End).Moment
		if text := strings.Join(told(&m), "\n"); !strings.HasPrefix(text, tt.want) {
			t.Errorf("%q: %s", tt.lines, text)
		}
	}
	if _, err := Play(t.Context(), split("begin q"), End); err == nil || !strings.Contains(err.Error(), `no pool "q"`) {
		t.Error(err)
	}
}

// Lines of links can be anything: none of them breaks the game.
func TestPoolsAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 8))
	steps := []string{"pool %s", "begin %s", "end %s", "close %s", "empty", "alloc %s%d 3MiB stream=1", "free %s%d", "record %s%d 2", "complete all"}
	for range 60 {
		lines := []string{"device total=256MiB limit=100MiB events=manual", "pool p", "pool q"}
		for range 40 {
			s := steps[r.IntN(len(steps))]
			args := []any{[]string{"p", "q"}[r.IntN(2)], r.IntN(5)}
			line := fmt.Sprintf(s, args[:strings.Count(s, "%")]...)
			if _, err := Play(t.Context(), append(slices.Clone(lines), line), End); err == nil {
				lines = append(lines, line) // others are mistakes at this point
			}
		}
		if len(lines) < 10 {
			t.Fatalf("hardly a line can be played: %q", lines)
		}
	}
}
