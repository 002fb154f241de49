package oracle

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// decode reads the JSON of a recording in either format and checks it.
func decode(r io.Reader, max limits) (rec *Recording, err *InputError) {
	p := newPuller(r, max)
	defer func() {
		if x := recover(); x != nil {
			e, ok := x.(*InputError)
			if !ok {
				panic(x)
			}
			rec, err = nil, e
		}
	}()
	rec = p.recording()
	if e := rec.check(); e != nil {
		return nil, e
	}
	return rec, nil
}

// The keys every recording has; besides, "total_memory" makes it an oracle
// recording and "total" a scenario.
var requiredKeys = []string{"conf", "fraction", "streams", "ops", "stats", "trace", "segments"}

func (p *puller) recording() *Recording {
	rec := &Recording{}
	seen := map[string]bool{}
	p.object(func(key string) {
		if seen[key] {
			p.failf("the key %.40q appears twice", key)
		}
		seen[key] = true
		p.key = key
		switch key {
		case "torch":
			rec.Torch = p.text()
		case "workload", "scen":
			rec.Workload = p.text()
		case "conf":
			rec.Conf = p.text()
		case "fraction":
			rec.Fraction = p.fraction()
		case "total_memory", "total":
			rec.TotalMemory = p.unsigned()
		case "streams":
			p.list(func(int) { rec.Streams = append(rec.Streams, p.handle()) })
		case "ops":
			p.rows(func(int) { rec.Ops = append(rec.Ops, p.op()) })
		case "stats":
			p.rows(func(int) { rec.Checkpoints = append(rec.Checkpoints, p.checkpoint()) })
		case "trace":
			p.rows(func(int) { rec.Trace = append(rec.Trace, p.event()) })
		case "segments":
			p.rows(func(int) { rec.Segments = append(rec.Segments, p.segment()) })
		case "oom_messages":
			p.rows(func(int) { rec.OOMMessages = append(rec.OOMMessages, p.message()) })
		default:
			p.skip()
		}
		p.key = ""
	})
	if _, err := p.dec.Token(); err != io.EOF {
		p.failf("something follows the end of the recording")
	}
	switch {
	case seen["total_memory"] && !seen["total"]:
		rec.Format = FormatOracle
	case seen["total"] && !seen["total_memory"]:
		rec.Format = FormatScenario
	}
	var missing []string
	for _, k := range requiredKeys {
		if !seen[k] {
			missing = append(missing, strconv.Quote(k))
		}
	}
	if rec.Format == "" {
		missing = append(missing, `"total_memory" or "total"`)
	}
	if missing != nil {
		panic(&InputError{Problem: "JSON, but not a recording: no " + strings.Join(missing, ", "), Advice: adviceOther})
	}
	return rec
}

// fraction reads the memory fraction, which is a text; empty means none.
func (p *puller) fraction() float64 {
	s := p.text()
	if s == "" {
		return -1
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.failf("expected a memory fraction from 0 to 1, found %.40q", s)
	}
	return p.checkFraction(f)
}

func (p *puller) checkFraction(f float64) float64 {
	if !(f >= 0 && f <= 1) {
		p.failf("expected a memory fraction from 0 to 1, found %v", f)
	}
	return f
}

// op reads one row of "ops".
func (p *puller) op() Op {
	p.delim('[')
	name := p.text()
	kind := slices.Index(opNames[:], name)
	if kind < 0 {
		p.failf("unknown operation %.40q; known are %s", name, strings.Join(opNames[:], " "))
	}
	op := Op{Kind: OpKind(kind)}
	switch op.Kind {
	case OpAlloc:
		op.ID, op.Size, op.Stream = p.unsigned(), p.unsigned(), p.index()
		if n := p.number(); n == "-1" {
			op.Failed = true
		} else if v, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
			op.Addr = v
		} else {
			p.failf("expected an address or -1, found %s", n)
		}
	case OpRecordStream:
		op.ID, op.Stream = p.unsigned(), p.index()
	case OpNewPool:
		op.ID, op.Text = p.unsigned(), p.text()
		op.Pool = p.poolID()
		if op.Text != "plain" && op.Text != "oom" && op.Text != "nosplit" {
			p.failf("unknown kind of MemPool %.40q; known are plain, oom, nosplit", op.Text)
		}
	case OpFree, OpEnterPool, OpExitPool, OpDeletePool, OpEndCapture, OpDeleteGraph:
		op.ID = p.unsigned()
	case OpBeginCapture:
		op.ID = p.unsigned()
		op.Share, op.Shared = p.optional()
	case OpConfigure:
		op.Text = p.text()
	case OpFraction:
		op.Fraction = p.checkFraction(p.float())
	case OpException:
		op.Text, op.Detail = p.text(), p.text()
	}
	p.delim(']')
	return op
}

// optional reads a number or null.
func (p *puller) optional() (uint64, bool) {
	t := p.token()
	if t == nil {
		return 0, false
	}
	n, ok := t.(json.Number)
	v, err := strconv.ParseUint(n.String(), 10, 64)
	if !ok || err != nil {
		p.failf("expected a number or null, found %s", describe(t))
	}
	return v, true
}

func (p *puller) poolID() alloc.PoolID {
	p.delim('[')
	id := alloc.PoolID{First: p.unsigned(), Second: p.unsigned()}
	p.delim(']')
	return id
}

// checkpoint reads one row of "stats".
func (p *puller) checkpoint() Checkpoint {
	p.delim('[')
	c := Checkpoint{Ops: p.index(), Stats: map[string]int64{}}
	p.object(func(key string) { c.Stats[key] = p.signed() })
	p.delim(']')
	return c
}

// event reads one row of "trace"; a fifth field is the number of the causing
// operation, as text.
func (p *puller) event() recorded.Event {
	p.delim('[')
	name := p.text()
	action, ok := alloc.ParseAction(name)
	if !ok {
		p.failf("unknown action %.40q", name)
	}
	e := recorded.Event{Action: action, Addr: p.unsigned(), Size: p.unsigned(), Stream: p.handle(), Op: -1}
	if p.dec.More() {
		if s := p.text(); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 || n > math.MaxInt32 {
				p.failf("expected the number of an operation, found %.40q", s)
			}
			e.Op = n
		}
	}
	p.delim(']')
	return e
}

// message reads one row of "oom_messages". Its number counts operations that
// are not in the file, so only the order is kept.
func (p *puller) message() string {
	p.delim('[')
	p.index()
	s := p.text()
	p.delim(']')
	return s
}
