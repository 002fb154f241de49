package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A command that is to end gets its grace period; an interrupt leaves 2 s to all
// of them together, and the second interrupt none.
func TestStopDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		kill := make(chan struct{})
		d := &stopDeadline{ctx: ctx, kill: kill}
		const grace = 20 * time.Second
		begin := time.Now()
		at := func(after time.Duration, begin time.Time, over bool) {
			t.Helper()
			time.Sleep(after)
			if d.passed(begin, grace) != over {
				t.Errorf("%v after its begin it is over: %v", time.Since(begin), !over)
			}
		}
		at(grace-1, begin, false)
		at(1, begin, true)

		begin = time.Now()
		at(time.Second, begin, false)
		interrupt()
		at(0, begin, false)
		at(interruptedGrace-1, begin, false)
		at(0, time.Now(), false)
		at(1, begin, true)
		at(0, time.Now(), true) // a later one has no time of its own

		d = &stopDeadline{ctx: t.Context(), kill: kill}
		at(0, time.Now(), false)
		close(kill)
		at(0, time.Now(), true)
	})
}
