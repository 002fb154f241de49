package oracle

import "fmt"

// The positions in Recording.Streams of the streams that take part in a
// capture; the capture itself runs on captureStream.
const (
	joinedStream  = 2
	captureStream = 3
)

// check makes sure that what the rows refer to exists, so that running them
// cannot go astray.
func (rec *Recording) check() *InputError {
	if len(rec.Streams) == 0 {
		return shapef(`"streams"`, "the list is empty")
	}
	c := opChecker{
		rec:     rec,
		tensors: map[uint64]bool{},
		pools:   map[uint64]bool{},
		graphs:  map[uint64]bool{},
	}
	for i := range rec.Ops {
		if problem := c.check(&rec.Ops[i]); problem != "" {
			return shapef(fmt.Sprintf(`"ops" row %d`, i), "%s: %s", &rec.Ops[i], problem)
		}
	}
	last := 0
	for i, cp := range rec.Checkpoints {
		where := fmt.Sprintf(`"stats" row %d`, i)
		if cp.Ops > len(rec.Ops) {
			return shapef(where, "taken after %d operations, of %d", cp.Ops, len(rec.Ops))
		}
		if cp.Ops < last {
			return shapef(where, "taken after %d operations, the one before it after %d", cp.Ops, last)
		}
		last = cp.Ops
	}
	last = 0
	for i, e := range rec.Trace {
		where := fmt.Sprintf(`"trace" row %d`, i)
		if e.Op >= len(rec.Ops) {
			return shapef(where, "caused by operation %d, of %d", e.Op, len(rec.Ops))
		}
		if e.Op >= 0 {
			if e.Op < last {
				return shapef(where, "caused by operation %d, the one before it by operation %d", e.Op, last)
			}
			last = e.Op
		}
	}
	return nil
}

// opChecker follows which tensors, pools and graphs exist.
type opChecker struct {
	rec       *Recording
	tensors   map[uint64]bool
	pools     map[uint64]bool
	graphs    map[uint64]bool
	capturing bool
	graph     uint64 // being captured
}

// check returns what is wrong with an operation, or "".
func (c *opChecker) check(op *Op) string {
	switch op.Kind {
	case OpAlloc, OpRecordStream:
		if op.Stream >= len(c.rec.Streams) {
			return fmt.Sprintf("the recording has only %d streams", len(c.rec.Streams))
		}
	}
	switch op.Kind {
	case OpAlloc:
		if c.tensors[op.ID] {
			return "the tensor exists already"
		}
		if !op.Failed {
			c.tensors[op.ID] = true
		}
	case OpFree, OpRecordStream:
		if !c.tensors[op.ID] {
			return "there is no such tensor at this point"
		}
		if op.Kind == OpFree {
			delete(c.tensors, op.ID)
		}
	case OpNewPool:
		if c.pools[op.ID] {
			return "the pool exists already"
		}
		c.pools[op.ID] = true
	case OpEnterPool, OpExitPool, OpDeletePool:
		if !c.pools[op.ID] {
			return "there is no such pool at this point"
		}
		if op.Kind == OpDeletePool {
			delete(c.pools, op.ID)
		}
	case OpBeginCapture, OpEndCapture, OpDeleteGraph:
		return c.checkCapture(op)
	}
	return ""
}

func (c *opChecker) checkCapture(op *Op) string {
	switch op.Kind {
	case OpBeginCapture:
		switch {
		case len(c.rec.Streams) <= captureStream:
			return fmt.Sprintf("a capture runs on stream %d, but the recording has only %d", captureStream, len(c.rec.Streams))
		case c.capturing:
			return fmt.Sprintf("graph %d is still being captured", c.graph)
		case c.graphs[op.ID]:
			return "the graph exists already"
		case op.Shared && !c.graphs[op.Share]:
			return "there is no such graph to share with"
		}
		c.capturing, c.graph = true, op.ID
	case OpEndCapture:
		if !c.capturing || c.graph != op.ID {
			return "the graph is not being captured"
		}
		c.capturing = false
		c.graphs[op.ID] = true
	case OpDeleteGraph:
		if !c.graphs[op.ID] {
			return "there is no such graph at this point"
		}
		delete(c.graphs, op.ID)
	}
	return ""
}
