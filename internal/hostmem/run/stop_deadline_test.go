package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What is to end has its grace; an interrupt leaves 2 s to all together, and the
// second one none.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		kill := make(chan struct{})
		p := &patience{ctx: ctx, kill: kill}
		const grace = 20 * time.Second
		begin := time.Now()
		at := func(after time.Duration, begin time.Time, over bool) {
			t.Helper()
			time.Sleep(after)
			if p.over(begin, grace) != over {
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
		at(0, time.Now(), true) // who comes later has no time of its own

		p = &patience{ctx: t.Context(), kill: kill}
		at(0, time.Now(), false)
		close(kill)
		at(0, time.Now(), true)
	})
}
