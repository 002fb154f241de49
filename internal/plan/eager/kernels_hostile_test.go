package eager

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A ledger may say anything: whatever a call looks like, no rule panics, and its
// moves can be performed.
func TestHostileCalls(t *testing.T) {
	const each = 2000
	for _, name := range slices.Sorted(maps.Keys(kernelRules())) {
		from := rand.New(rand.NewPCG(1, 2))
		k := NewKernels(H200)
		for range each {
			c := hostileCall(from, "aten."+name+".default")
			if err := tryCall(k, c); err != nil {
				t.Errorf("%s: %v\nof %+v", name, err, *c)
				break
			}
		}
	}
}

// tryCall runs a call and checks its moves.
func tryCall(k *Kernels, c *Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	moves, _ := k.Run(c)
	freed, made := make([]bool, len(moves)), make([]bool, len(c.Out))
	for i, m := range moves {
		switch {
		case m.Free >= i:
			return fmt.Errorf("move %d frees move %d", i, m.Free)
		case m.Free >= 0 && freed[m.Free]:
			return fmt.Errorf("move %d is freed twice", m.Free)
		case m.Free >= 0:
			freed[m.Free] = true
		case m.Bytes < 0 || m.Bytes > MaxBytes:
			return fmt.Errorf("move %d has %d bytes", i, m.Bytes)
		case m.Out >= 0 && (!c.Fresh[m.Out] || made[m.Out]):
			return fmt.Errorf("output %d is made twice or is not new", m.Out)
		case m.Out >= 0:
			made[m.Out] = true
		}
	}
	for i, fresh := range c.Fresh {
		if fresh && !made[i] && c.Out[i].Bytes > 0 {
			return fmt.Errorf("output %d is not made", i)
		}
	}
	return nil
}

func hostileCall(from *rand.Rand, op string) *Call {
	c := &Call{Op: op, Thread: from.IntN(2), Stream: from.IntN(2)}
	tensor := hostileMeta
	if from.IntN(2) == 0 { // rules refuse most of what is wild before they look at it
		tensor = oddMeta
	}
	for range from.IntN(8) {
		c.In = append(c.In, tensor(from))
	}
	for range from.IntN(5) {
		m := tensor(from)
		m.Bytes = min(hostileSize(from), MaxBytes)
		c.Out, c.Fresh = append(c.Out, m), append(c.Fresh, from.IntN(4) > 0)
	}
	for range from.IntN(16) {
		c.Args = append(c.Args, hostileArg(from, 2))
	}
	return c
}

func hostileMeta(from *rand.Rand) Meta {
	m := Meta{DType: DType(from.IntN(len(dtypeNames))), Known: from.IntN(16) > 0}
	for range from.IntN(MaxDims + 2) {
		m.Shape, m.Stride = append(m.Shape, hostileSize(from)), append(m.Stride, hostileSize(from))
	}
	if from.IntN(4) == 0 {
		m.Shape = m.Shape[:len(m.Shape)/2]
	}
	return m
}

// oddMeta is a tensor that could be one.
func oddMeta(from *rand.Rand) Meta {
	m := Meta{DType: DType(from.IntN(len(dtypeNames))), Known: true}
	for range 1 + from.IntN(4) + from.IntN(2) {
		m.Shape, m.Stride = append(m.Shape, from.Int64N(6)), append(m.Stride, from.Int64N(9))
	}
	if n := from.IntN(len(m.Shape)); from.IntN(4) == 0 {
		m.Shape[n] = from.Int64N(1 << 20)
	}
	return m
}

func hostileSize(from *rand.Rand) int64 {
	switch from.IntN(8) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return from.Int64()
	case 3:
		return from.Int64N(1 << 42)
	}
	return from.Int64N(300)
}

func hostileArg(from *rand.Rand, deep int) any {
	switch from.IntN(9) {
	case 0:
		return nil
	case 1:
		return from.IntN(2) > 0
	case 2:
		return Ref(from.IntN(9) - 2)
	case 3:
		return "mean"
	case 4:
		return -from.Float64() * 1e30
	case 5:
		return from.Float64()
	case 6:
		if deep > 0 {
			list := make([]any, from.IntN(6))
			for i := range list {
				list[i] = hostileArg(from, deep-1)
			}
			return list
		}
	}
	return float64(hostileSize(from))
}
