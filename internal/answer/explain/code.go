package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// known returns the stack of findings: none where there are no frames.
func known(id trace.StackID) trace.StackID {
	if id == trace.EmptyStack {
		return trace.NoStack
	}
	return id
}

// code tries the changes of the program that the cause suggests, each by a replay
// of the changed calls.
func (j *judge) code() error {
	switch j.report.Cause {
	case Leak:
		return j.stopLeak()
	case AbsurdRequest:
		j.add(FixShape, "print(x.shape, x.max())", "check the shapes and the values that this line gets: it makes one tensor of "+units.Size(j.failed.call.Size), nil)
	case SharedDevice:
		j.add(FixOthers, answer.AllocatorOf(j.trace).Lister(), "end the other users of the device, or move the job", nil)
	case Capacity, Spike:
		return j.needLess()
	case Fragmentation:
		if len(j.report.Fixes) == 0 {
			return j.needLess()
		}
	}
	return nil
}

// add adds a change whose effect is not replayed.
func (j *judge) add(kind, code, detail string, saves *uint64) {
	j.report.Fixes = append(j.report.Fixes, Fix{Kind: kind, Code: code, Line: j.report.Line, Detail: detail, Bytes: saves})
}

// try replays a change and adds it if the failing step ends with it.
func (j *judge) try(kind, code, what string, edit prognosis.Edit) (bool, error) {
	x := j.forecast.With(edit)
	f := Fix{Kind: kind, Code: code, Line: j.report.Line}
	if j.forecast.Need > x.Need {
		saves := j.forecast.Need - x.Need
		f.Bytes = &saves
		what += ", " + units.Size(saves) + " less"
	}
	c := j.failed.whole(j.conditions(j.limits.high))
	done, err := j.carry(&f, x, c)
	if !done || err != nil {
		return false, err
	}
	if j.Points > 0 {
		if f.Curve, err = x.Curve(j.ctx, c, j.Points); err != nil {
			return false, err
		}
	}
	f.Detail = what + ": " + f.Detail
	j.report.Fixes = append(j.report.Fixes, f)
	return true, nil
}

// keepOnHost is the change that mends most leaks.
const keepOnHost = "kept.append(x.detach().cpu())"

// stopLeak drops what the steps leave behind.
func (j *judge) stopLeak() error {
	kept, replaced := map[trace.StackID]bool{}, map[trace.StackID]bool{}
	for i := range j.leaks {
		its := kept
		if j.leaks[i].Replaced {
			its = replaced
		}
		for _, p := range j.leaks[i].Parts {
			its[p.Stack] = true
		}
	}
	stack := func(position int) trace.StackID { return known(j.trace.Events.Stack.At(j.forecast.Event(position))) }
	leaked := func(position int) bool { return kept[stack(position)] && j.forecast.Kept(position) }
	drop := prognosis.Edit{
		Drop: leaked,
		Size: func(position int, size uint64) uint64 {
			if position >= 0 && replaced[stack(position)] {
				return 0
			}
			return size
		},
	}
	if j.keepsGraph() && !j.forecast.Released(leaked) {
		if _, err := j.try(FixDetach, "kept = x.detach()   # a number: x.item()", "keep it without its graph, whose activations stay as long as it does", drop); err != nil {
			return err
		}
	}
	if _, err := j.try(FixCPU, keepOnHost, "keep it on the host, without its graph, or not at all", drop); err != nil {
		return err
	}
	if len(replaced) > 0 {
		j.doubt(FixCPU) // each step reads it
	}
	j.add(FixDel, "kept.clear()", "drop what keeps it: a list, a cache, a hook, an exception", nil)
	return nil
}

// doubt takes back how far a kind of fix carries the run: that rests on something
// which the recording does not show.
func (j *judge) doubt(kind string) {
	for i := range j.report.Fixes {
		if f := &j.report.Fixes[i]; f.Kind == kind && f.Carries != nil {
			f.Carries = &prognosis.Carries{Kind: prognosis.Unknown, RestsOn: "the recording does not show whether it is enough"}
			f.Detail, _, _ = strings.Cut(f.Detail, ":")
			f.Detail += ": " + words(f.Carries)
		}
	}
}

// keepsGraph reports whether a graph is kept: then operations all over the model
// leave behind what they save for the backward pass. What a program keeps by hand
// comes from one place or two.
func (j *judge) keepsGraph() bool {
	const operations = 3
	places := map[timeline.Frame]bool{}
	for i := range j.leaks {
		for _, p := range j.leaks[i].Parts {
			if site, ok := timeline.SiteOf(j.trace, p.Stack); ok {
				places[site.Inner] = true
			}
		}
	}
	return len(places) >= operations
}

// needLess tries what makes a step smaller.
func (j *judge) needLess() error {
	stack := trace.NoStack
	if j.event < j.trace.Events.Len() {
		stack = known(j.trace.Events.Stack.At(j.event))
	}
	if j.analysis.FirstForward() >= j.event && j.movesModule(stack) {
		j.add(FixHalf, "model = model.to(torch.bfloat16)   # before it goes to the device", "half the bytes of the weights: no forward pass has begun, the model itself does not fit", nil)
		return nil
	}
	if j.inOptimizer(stack) {
		_, err := j.try(FixOptimizer, "torch.optim.SGD(model.parameters(), lr)   # or an 8-bit Adam", "an optimizer with less state", j.withoutWhere(j.inOptimizer))
		return err
	}
	if j.isLoss(stack) {
		if _, err := j.parts(FixChunk, "for part in logits.chunk(%d): F.cross_entropy(...)   # with its labels", "the loss in %d parts", j.ofLoss()); err != nil {
			return err
		}
	}
	if s := j.forecast.Series; s != nil || j.report.Cause == Spike && !j.forecast.Matched && !j.inModule(stack) && !j.isLoss(stack) {
		_, err := j.try(FixCPU, "x.cpu()   # or one part after the other", "make the copy on the host, or one part after the other", j.withoutWhere(func(id trace.StackID) bool {
			return s != nil && slices.Contains(s.Stacks, id) || id == stack
		}))
		return err
	}
	if j.evaluates() {
		j.add(FixNoGrad, "with torch.no_grad():", "evaluate without a graph: what the forward pass saves for the backward pass is not kept", nil)
	}
	if held := j.activations(); held > 0 {
		defer func() {
			j.add(FixCheckpoint, "model.gradient_checkpointing_enable()   # or torch.utils.checkpoint around each block",
				fmt.Sprintf("make activations again in the backward pass: up to %s of them are held", units.Size(held)), &held)
		}()
	}
	if j.forecast.Matched && stack > trace.EmptyStack && j.analysis.FirstForward() < j.event && !j.inModule(stack) && !j.isLoss(stack) {
		if j.forecast.Passing(-1) {
			if done, err := j.parts(FixChunk, "for part in x.chunk(%d):", "in %d parts, one after the other: nothing of it waits for a backward pass", j.passing()); done || err != nil {
				return err
			}
		}
		defer j.doubt(FixMicroBatch) // the request may not depend on the batch
	}
	_, err := j.parts(FixMicroBatch, "micro-batch / %d, gradient accumulation x %[1]d", "a smaller micro-batch, 1/%d", j.ofBatch())
	return err
}

// activations returns what the failing step holds for its backward pass.
func (j *judge) activations() (bytes uint64) {
	batch := j.ofBatch()
	for i := j.forecast.Failing(); i < j.forecast.Allocations(); i++ {
		if batch(i) && j.forecast.Live(i) && j.inModule(known(j.trace.Events.Stack.At(j.forecast.Event(i)))) {
			bytes += j.forecast.Size(i)
		}
	}
	return bytes
}

// movesModule reports whether a stack is of an nn.Module that goes to the device.
func (j *judge) movesModule(stack trace.StackID) bool {
	return slices.ContainsFunc(timeline.Frames(j.trace, stack), func(f timeline.Frame) bool {
		return f.Name == "_apply" && strings.HasSuffix(f.Filename, "torch/nn/modules/module.py")
	})
}

// moduleCall is the function of PyTorch that calls an nn.Module.
const moduleCall = "_call_impl"

// inModule reports whether a stack is inside a call of an nn.Module.
func (j *judge) inModule(stack trace.StackID) bool {
	return slices.ContainsFunc(timeline.Frames(j.trace, stack), func(f timeline.Frame) bool { return f.Name == moduleCall })
}

// withoutWhere leaves out what some stacks allocate in the failing step.
func (j *judge) withoutWhere(its func(trace.StackID) bool) prognosis.Edit {
	failing := j.forecast.Failing()
	return prognosis.Edit{Size: func(position int, size uint64) uint64 {
		if position < 0 || position >= failing && its(known(j.trace.Events.Stack.At(j.forecast.Event(position)))) {
			return 0
		}
		return size
	}}
}

// inOptimizer reports whether a stack is in torch.optim.
func (j *judge) inOptimizer(stack trace.StackID) bool {
	for _, f := range timeline.Frames(j.trace, stack) {
		if strings.Contains(f.Filename, "torch/optim/") {
			return true
		}
	}
	return false
}

// evaluates reports whether the failure is in other work than the steps, that has
// no backward pass.
func (j *judge) evaluates() bool {
	if j.forecast.Matched || !j.hasSteps() {
		return false
	}
	from := j.lastEnd()
	for i := j.forecast.Failing(); i < j.forecast.Allocations(); i++ {
		if e := j.forecast.Event(i); e >= from && j.trace.Events.Stack.At(e) <= trace.EmptyStack {
			return false
		}
	}
	return true
}

// parts tries a change that divides some allocations by 2, 4 or 8, the smallest
// that is enough. It reports whether one is.
func (j *judge) parts(kind, code, what string, its func(position int) bool) (bool, error) {
	for _, n := range []uint64{2, 4, 8} {
		edit := prognosis.Edit{Size: func(position int, size uint64) uint64 {
			if its(position) {
				return max(size/n, 1)
			}
			return size
		}}
		if done, err := j.try(kind, fmt.Sprintf(code, n), fmt.Sprintf(what, n), edit); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// ofBatch reports which allocations grow with the batch: what a step makes and
// frees, but for gradients and what has the size of a parameter.
func (j *judge) ofBatch() func(position int) bool {
	lasting := map[uint64]bool{}
	failing := j.forecast.Failing()
	for i := range j.forecast.Allocations() {
		if j.isParameter(i) {
			lasting[j.forecast.Size(i)] = true
		}
	}
	steps, begun := len(j.analysis.Steps.List) > 0 && !j.guessed, j.analysis.FirstForward() < j.event
	return func(position int) bool {
		if position < 0 {
			return !lasting[j.failed.call.Size]
		}
		if lasting[j.forecast.Size(position)] {
			return false
		}
		if !steps {
			return begun && position >= failing
		}
		switch j.category(position) {
		case findings.Activations, findings.Temporaries, findings.Unknown:
			return true
		}
		return false
	}
}

// passing reports which allocations the program makes outside of modules and drops
// before the backward pass.
func (j *judge) passing() func(position int) bool {
	batch := j.ofBatch()
	return func(position int) bool {
		return position < 0 || batch(position) && j.forecast.Passing(position) && !j.inModule(known(j.trace.Events.Stack.At(j.forecast.Event(position))))
	}
}

// ofLoss reports which allocations belong to the loss: those of its functions, and
// what has their size.
func (j *judge) ofLoss() func(position int) bool {
	sizes := map[uint64]bool{j.failed.call.Size: true}
	failing := j.forecast.Failing()
	for i := failing; i < j.forecast.Allocations(); i++ {
		if j.isLoss(known(j.trace.Events.Stack.At(j.forecast.Event(i)))) {
			sizes[j.forecast.Size(i)] = true
		}
	}
	batch := j.ofBatch()
	return func(position int) bool {
		return position < 0 || batch(position) && (sizes[j.forecast.Size(position)] || sizes[2*j.forecast.Size(position)])
	}
}

func (j *judge) category(position int) findings.Category {
	if j.blocks == nil {
		return findings.Unknown
	}
	b := j.blocks.BlockOf(j.forecast.Event(position))
	if b < 0 {
		return findings.Unknown
	}
	c, _ := j.analysis.CategoryOf(j.blocks, b)
	return c
}

func (j *judge) isParameter(position int) bool {
	if len(j.analysis.Steps.List) == 0 || j.guessed {
		return position < j.forecast.Failing()
	}
	return j.category(position) == findings.Parameters
}

// isLoss reports whether a stack is inside a loss function: between its innermost
// frame and the nn.Module that called it.
func (j *judge) isLoss(stack trace.StackID) bool {
	for _, f := range timeline.Frames(j.trace, stack) {
		if name := strings.ToLower(f.Name); strings.Contains(name, "loss") || strings.Contains(name, "cross_entropy") || name == "log_softmax" {
			return true
		}
		if f.Name == moduleCall || f.User() {
			return false
		}
	}
	return false
}
