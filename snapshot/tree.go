package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/trace"
)

// treeEncoder makes a value that trace.Extra can hold.
type treeEncoder struct {
	open         []trace.Field // the containers being made, under their names
	name         string        // the last key
	result       any
	count, limit int
	depth, max   int
	tooMuch, err error
}

func (e *treeEncoder) put(v any) {
	if e.count++; e.count > e.limit && e.err == nil {
		e.err = e.tooMuch
	}
	if e.err != nil {
		return
	}
	if len(e.open) == 0 {
		e.result = v
		return
	}
	top := &e.open[len(e.open)-1]
	switch container := top.Value.(type) {
	case trace.List:
		top.Value = append(container, v)
	case trace.Extra:
		top.Value = append(container, trace.Field{Name: e.name, Value: v})
	}
}

func (e *treeEncoder) begin(container any) {
	if e.depth+len(e.open) > e.max && e.err == nil {
		e.err = fmt.Errorf("more than %d containers inside each other", e.max)
	}
	e.open = append(e.open, trace.Field{Name: e.name, Value: container})
}

func (e *treeEncoder) end() {
	done := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	e.name = done.Name
	e.put(done.Value)
}

func (e *treeEncoder) beginDict()      { e.begin(trace.Extra{}) }
func (e *treeEncoder) beginList()      { e.begin(trace.List{}) }
func (e *treeEncoder) endDict()        { e.end() }
func (e *treeEncoder) endList()        { e.end() }
func (e *treeEncoder) key(name string) { e.name = name }
func (e *treeEncoder) text(s string)   { e.put(s) }
func (e *treeEncoder) int(n int64)     { e.put(n) }
func (e *treeEncoder) bool(x bool)     { e.put(x) }
func (e *treeEncoder) other(v any)     { e.put(v) }

func (e *treeEncoder) pair(first, second int64) { e.put(trace.List{first, second}) }

func (e *treeEncoder) beginShared(s shared) bool {
	if s.rec == recStack {
		e.beginList()
	} else {
		e.beginDict()
	}
	return e.err == nil
}
