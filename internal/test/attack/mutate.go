package attack

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
)

// slot is a place of a value.
type slot struct {
	key    string // under which it stands, "" in a list
	value  any
	set    func(any)
	remove func()
}

// slots returns the places of a value, all of them.
func slots(v any) []slot {
	var all []slot
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case *List:
			for i, item := range v.Items {
				all = append(all, slot{"", item, func(x any) { v.Items[i] = x }, func() {
					if i < len(v.Items) {
						v.Items = append(v.Items[:i:i], v.Items[i+1:]...)
					}
				}})
				walk(item)
			}
		case *Dict:
			for i, item := range v.Values {
				key, _ := v.Keys[i].(string)
				all = append(all, slot{key, item, func(x any) { v.Values[i] = x }, func() {
					if i < len(v.Keys) {
						v.Keys = append(v.Keys[:i:i], v.Keys[i+1:]...)
						v.Values = append(v.Values[:i:i], v.Values[i+1:]...)
					}
				}})
				walk(item)
			}
		}
	}
	walk(v)
	return all
}

// Marker is in texts that attack a page: as a tag it must not be in one.
const Marker = "<script>attack()</script>"

var oddTexts = []string{
	"", " ", "\x1b[31mred\x1b]0;title\x07", "\u009b31m", "\u202eabc\u202c", "\x00", "\r\n\t\v", Marker, `"><img src=x onerror=attack()>`,
	"${attack}", "%s%n%d", "../../etc/passwd", "ä€\U0001f600", strings.Repeat("a", 5000), strings.Repeat("\\", 300), "NaN", "-1", "1e999",
	"alloc", "free_completed", "segment_unmap", "oom", "active_pending_free", "\u2028", "'; drop table", "`id`", "__proto__", "constructor",
}

var oddSizes = []int64{
	-1, -1, -512, 0, 1, 7, 511, 512, 513, 1 << 20, 2<<20 - 1, 2 << 20, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 40, 1<<46 - 512, 1 << 46, 1 << 47, 1 << 49,
	1 << 52, 1<<53 + 1, 1 << 62, math.MaxInt64 - 511, math.MaxInt64, math.MinInt64,
}

// oddValue returns a value that is seldom right.
func oddValue(r *rand.Rand) any {
	switch r.IntN(10) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return []float64{0, -0.5, 1e308, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324}[r.IntN(7)]
	case 3:
		return new(big.Int).Lsh(big.NewInt(int64(1-2*r.IntN(2))), uint(63+r.IntN(600)))
	case 4:
		return oddTexts[r.IntN(len(oddTexts))]
	case 5:
		return &List{Tuple: r.IntN(2) == 0}
	case 6:
		return &Dict{}
	}
	return oddSizes[r.IntN(len(oddSizes))]
}

// change returns a number near another, or far away.
func change(r *rand.Rand, n int64) int64 {
	switch r.IntN(8) {
	case 0:
		return n + int64(r.IntN(3)-1)
	case 1:
		return n + 512*int64(r.IntN(9)-4)
	case 2:
		return -n
	case 3:
		return n << r.IntN(40)
	case 4:
		return n ^ 1<<r.IntN(63)
	}
	return oddSizes[r.IntN(len(oddSizes))]
}

// sizeKeys are where numbers matter most.
var sizeKeys = []string{
	"total_size", "size", "address", "allocated_size", "active_size", "requested_size", "addr", "device", "stream", "time_us", "line", "device_free",
}

// mutate changes a value in some places. It says what it did.
func mutate(r *rand.Rand, v any) string {
	var did []string
	for range 1 + r.IntN(3) {
		all := slots(v)
		if len(all) == 0 {
			break
		}
		s := all[r.IntN(len(all))]
		if r.IntN(2) == 0 { // the numbers of segments and events
			key := sizeKeys[r.IntN(len(sizeKeys))]
			if r.IntN(3) == 0 {
				key = "total_size"
			}
			if at := keyed(all, key); len(at) > 0 {
				s = at[r.IntN(len(at))]
			}
		}
		did = append(did, mutateSlot(r, s, all))
	}
	return strings.Join(did, ", ")
}

func keyed(all []slot, key string) []slot {
	var out []slot
	for _, s := range all {
		if s.key == key {
			out = append(out, s)
		}
	}
	return out
}

func mutateSlot(r *rand.Rand, s slot, all []slot) string {
	switch n, number := s.value.(int64); {
	case number && r.IntN(4) > 0:
		changed := change(r, n)
		s.set(changed)
		return fmt.Sprintf("%s %d to %d", s.key, n, changed)
	case s.key != "" && r.IntN(6) == 0: // in all places
		same := keyed(all, s.key)
		v := oddValue(r)
		for _, x := range same {
			x.set(v)
		}
		return fmt.Sprintf("every %s to %.40v", s.key, v)
	case r.IntN(4) == 0:
		s.remove()
		return "remove " + s.key
	case r.IntN(4) == 0:
		other := all[r.IntN(len(all))]
		s.set(clone(other.value))
		return s.key + " as " + other.key
	}
	if text, ok := s.value.(string); ok {
		odd := oddTexts[r.IntN(len(oddTexts))]
		s.set(odd)
		return fmt.Sprintf("%s %.20q to %.40q", s.key, text, odd)
	}
	v := oddValue(r)
	s.set(v)
	return fmt.Sprintf("%s to %.40v", s.key, v)
}

// scramble changes bytes of a file.
func scramble(r *rand.Rand, data []byte) []byte {
	out := append([]byte{}, data...)
	for range 1 + r.IntN(4) {
		if len(out) == 0 {
			break
		}
		at := r.IntN(len(out))
		n := min(len(out)-at, 1+r.IntN(64))
		switch r.IntN(6) {
		case 0:
			out = out[:at]
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			out = append(out[:at:at], out[at+n:]...)
		case 3:
			out = append(out[:at:at], append(append([]byte{}, out[at:at+n]...), out[at:]...)...)
		case 4:
			copy(out[at:at+n], strings.Repeat("\xff", n))
		case 5:
			out = append(out[:at:at], append([]byte(oddTexts[r.IntN(len(oddTexts))]), out[at:]...)...)
		}
	}
	return out
}
