package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// pieces are the numbers of pieces that a request is tried in, most first: what
// fails in many pieces fails in fewer.
var pieces = []uint64{8, 2, 4}

// makeSmaller tries to make the largest transient memory smaller: the request
// itself, or other memory of the step.
func (c *coder) makeSmaller() error {
	if c.event >= c.trace.Events.Len() {
		return nil // where the request was made is not known
	}
	stack := known(c.trace.Events.Stack.At(c.event))
	now := c.ofThisStep()
	var largest *life
	for i := range now {
		if slices.Contains(c.passing, now[i].stack) && !c.leaks(now[i].stack) && (largest == nil || now[i].size > largest.size) {
			largest = &now[i]
		}
	}
	call := c.callOf(stack)
	if call != nil && (largest == nil || c.failed.call.Size >= largest.size || c.sameCall(call, c.failed.call.Size, largest)) && c.recurs(stack, call, now) {
		done, err := c.smallerRequest(stack)
		if done || err != nil {
			return err
		}
	}
	if largest == nil || c.callOf(largest.stack) == nil || c.toCome(largest.stack, now) != 0 {
		return nil
	}
	return c.smallerLive(largest, now)
}

// stepBegin returns where the step that failed begins: behind the last one, if
// the failure is in none.
func (c *coder) stepBegin() int {
	if i := c.steps.Of(c.event); i >= 0 {
		return c.steps.List[i].Begin
	}
	if n := len(c.steps.List); n > 0 && c.steps.List[n-1].End <= c.event {
		return c.steps.List[n-1].End
	}
	return 0
}

// ofThisStep returns the tensors of the step that failed which are there then.
func (c *coder) ofThisStep() []life {
	begin := c.stepBegin()
	var out []life
	for _, l := range c.lives {
		if l.born >= begin && l.freed == c.event {
			out = append(out, l)
		}
	}
	return out
}

// recurs reports whether a request is one of those that come and go and make
// the peak of a step: its stack is known for that, or other memory of the same
// call is.
func (c *coder) recurs(stack trace.StackID, call []trace.FrameID, now []life) bool {
	begin := c.stepBegin()
	for _, l := range c.lives {
		if l.stack == stack && l.born < begin && l.freed == c.event {
			return false // what it gives stays
		}
	}
	if c.toCome(stack, now) > 1 {
		return false // more of the same follow
	}
	if t := c.found.Transient; t != nil && slices.ContainsFunc(t.Parts, func(p findings.Part) bool { return p.Stack == stack }) {
		return true
	}
	return slices.ContainsFunc(now, func(l life) bool {
		return slices.Contains(c.passing, l.stack) && c.sameCall(call, c.failed.call.Size, &l)
	})
}

// toCome returns how many more tensors of a stack the last complete step had at
// once than there are now. If no step is complete, a single tensor is taken to be
// all; with several, the number to come is unknown.
func (c *coder) toCome(stack trace.StackID, now []life) int {
	have := 0
	for _, l := range now {
		if l.stack == stack {
			have++
		}
	}
	n := c.steps.Complete()
	for n > 0 && c.steps.List[n-1].End > c.event {
		n--
	}
	if n == 0 && have > 1 {
		return have
	} else if n == 0 {
		return 1 - have
	}
	step := c.steps.List[n-1]
	type change struct{ event, by int }
	var changes []change
	for _, l := range c.lives {
		if l.stack == stack && l.born >= step.Begin && l.born < step.End {
			changes = append(changes, change{l.born, 1}, change{l.freed, -1})
		}
	}
	slices.SortFunc(changes, func(x, y change) int { return cmp.Or(cmp.Compare(x.event, y.event), cmp.Compare(x.by, y.by)) })
	most, at := 0, 0
	for _, ch := range changes {
		at += ch.by
		most = max(most, at)
	}
	return max(most, 1) - have
}

// callOf returns the call that a stack belongs to: the frames from the
// innermost nn.Module on, or from the user's own program if there is none
// before it; nil if no line of the user's shows.
func (c *coder) callOf(stack trace.StackID) []trace.FrameID {
	if call, ok := c.calls[stack]; ok {
		return call
	}
	module := -1
	for i, f := range timeline.Frames(c.trace, stack) {
		if module < 0 && f.Name == moduleCall {
			module = i
		}
		if f.User() {
			if module < 0 {
				module = i
			}
			c.calls[stack] = c.trace.Stacks.Frames(stack)[module:]
			return c.calls[stack]
		}
	}
	c.calls[stack] = nil
	return nil
}

// moduleCall is the function of PyTorch that calls an nn.Module.
const moduleCall = "_call_impl"

// sameCall reports whether memory belongs to the same call as a request, and
// the one size is a multiple of the other: a copy in another type, a result for
// each of the inputs.
func (c *coder) sameCall(call []trace.FrameID, size uint64, l *life) bool {
	small, large := min(size, l.size), max(size, l.size)
	return small > 0 && large%small == 0 && slices.Equal(call, c.callOf(l.stack))
}

// smallerRequest makes the request in pieces.
func (c *coder) smallerRequest(stack trace.StackID) (bool, error) {
	size := c.failed.call.Size
	return c.smallest(func(n uint64) (uint64, string) {
		how := "make the request"
		if c.isLoss(stack) {
			how = "chunk the loss"
		}
		return size - size/n, fmt.Sprintf("%s in %d parts, one after the other: requests of %s instead of %s are served; the request is made at %s",
			how, n, units.Size(size/n), units.Size(size), c.site(stack))
	}, func(n uint64) func(replay.Conditions) (bool, error) {
		return func(cond replay.Conditions) (bool, error) {
			f := *c.failed
			f.call.Size = size / n
			return f.servedAfter(c.ctx, cond, func(*replay.Paused) error { return nil })
		}
	})
}

// smallerLive makes the largest transient memory of the step smaller.
func (c *coder) smallerLive(largest *life, now []life) error {
	born := map[int]*life{}
	bytes := uint64(0)
	call := c.callOf(largest.stack)
	for i := range now {
		if now[i].stack == largest.stack || c.sameCall(call, largest.size, &now[i]) && slices.Contains(c.passing, now[i].stack) {
			born[now[i].born] = &now[i]
			bytes += now[i].size
		}
	}
	_, err := c.smallest(func(n uint64) (uint64, string) {
		how := "use a smaller micro-batch, or the same"
		if c.isLoss(largest.stack) {
			how = "chunk the loss"
		}
		return bytes - bytes/n, fmt.Sprintf("%s in %d parts, one after the other: the request is served with %s instead of %s in %s of this step, allocated at %s",
			how, n, units.Size(bytes/n), units.Size(bytes), tensorCount(len(born)), c.site(largest.stack))
	}, func(n uint64) func(replay.Conditions) (bool, error) {
		return func(cond replay.Conditions) (bool, error) {
			enough := true
			served, err := c.failed.servedAfter(c.ctx, cond, func(m *replay.Paused) error {
				var again []replay.Call
				for _, b := range m.Live() {
					if l := born[b.Event]; l != nil {
						again = append(again, replay.Call{Size: max(l.size/n, 1), Stream: l.stream, Pool: l.pool})
						if err := m.Free(b.Address); err != nil {
							return err
						}
					}
				}
				for _, call := range again {
					enough = enough && m.Request(call) == nil
				}
				return nil
			})
			return served && enough, err
		}
	})
	return err
}

// smallest finds the fewest pieces with which the request is served and adds
// that as a fix.
func (c *coder) smallest(say func(n uint64) (uint64, string), try func(n uint64) func(replay.Conditions) (bool, error)) (bool, error) {
	for i, n := range pieces {
		bytes, detail := say(n)
		if i == 0 {
			if served, err := try(n)(c.conditions(c.limits.high)); !served || err != nil {
				return false, err
			}
			continue
		}
		if served, err := c.served(&detail, try(n)); err != nil {
			return false, err
		} else if served {
			c.add(bytes, detail)
			return true, nil
		}
	}
	bytes, detail := say(pieces[0])
	_, err := c.served(&detail, try(pieces[0]))
	c.add(bytes, detail)
	return true, err
}

func (c *coder) site(stack trace.StackID) string {
	s, _ := timeline.SiteOf(c.trace, stack)
	return s.String()
}

// isLoss reports whether a stack is inside a loss function: between its
// innermost frame and the nn.Module that called it.
func (c *coder) isLoss(stack trace.StackID) bool {
	for _, f := range timeline.Frames(c.trace, stack) {
		if name := strings.ToLower(f.Name); strings.Contains(name, "loss") || strings.Contains(name, "cross_entropy") {
			return true
		}
		if f.Name == moduleCall || f.User() {
			return false
		}
	}
	return false
}
