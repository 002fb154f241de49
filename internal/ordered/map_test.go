package ordered

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type pair struct {
	key   uint64
	value int
}

// check looks at the rows, and compares all answers around some keys with those of a sorted list.
func check(m *Map[int], list []pair, keys ...uint64) error {
	if m.Len() != len(list) {
		return fmt.Errorf("%d keys, want %d", m.Len(), len(list))
	}
	for i, r := range m.rows {
		if len(r.keys) == 0 || len(r.keys) > rowLen || len(r.keys) != len(r.values) || r.keys[0] < m.firsts[i] ||
			i+1 < len(m.rows) && r.keys[len(r.keys)-1] >= m.firsts[i+1] {
			return fmt.Errorf("row %d of %d from %d: %d", i, len(m.rows), m.firsts[i], r.keys)
		}
	}
	var got []pair
	for k, v := range m.All() {
		got = append(got, pair{k, *v})
	}
	if !slices.Equal(got, list) {
		return fmt.Errorf("%v, want %v", got, list)
	}
	for _, k := range keys {
		i, found := slices.BinarySearchFunc(list, k, func(p pair, k uint64) int { return cmp.Compare(p.key, k) })
		if v := m.Get(k); v != nil != found || found && *v != list[i].value {
			return fmt.Errorf("get %d: %v", k, v)
		}
		after, v := m.After(k)
		if v != nil != (i < len(list)) || v != nil && (pair{after, *v}) != list[i] {
			return fmt.Errorf("after %d: %d, %v", k, after, v)
		}
		if !found {
			i--
		}
		before, v := m.Before(k)
		if v != nil != (i >= 0) || v != nil && (pair{before, *v}) != list[i] {
			return fmt.Errorf("before %d: %d, %v", k, before, v)
		}
	}
	return nil
}

func TestMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[int]
		var list []pair
		most := rapid.SampledFrom([]uint64{4, 300, 5000, 1 << 40}).Draw(t, "most")
		step := rapid.SampledFrom([]string{"random", "up", "down"}).Draw(t, "how")
		next := most / 2
		for n := range rapid.IntRange(0, 1500).Draw(t, "changes") {
			k := rapid.Uint64Max(most).Draw(t, "key")
			switch step {
			case "up":
				next++
				k = next
			case "down":
				next--
				k = next
			}
			i, found := slices.BinarySearchFunc(list, k, func(p pair, k uint64) int { return cmp.Compare(p.key, k) })
			switch {
			case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
				if len(list) > 0 && step != "random" {
					i, found = rapid.IntRange(0, len(list)-1).Draw(t, "which"), true
					k = list[i].key
				}
				if m.Delete(k) != found {
					t.Fatalf("delete %d", k)
				}
				if found {
					list = slices.Delete(list, i, i+1)
				}
			case found:
				m.Set(k, n)
				list[i].value = n
			default:
				m.Set(k, n)
				list = slices.Insert(list, i, pair{k, n})
			}
			if n%100 == 0 {
				if err := check(&m, list, k, k+1, k-1, 0, most); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := m.Clone()
		if err := check(&m, list, next, most); err != nil {
			t.Fatal(err)
		}
		m.Set(most+1, 1)
		m.Delete(next)
		if err := check(&c, list, next, most); err != nil {
			t.Fatalf("the clone: %v", err)
		}
	})
}

// TestRows: keys in order fill rows, and those that are left alone do not stay.
func TestRows(t *testing.T) {
	var m Map[int]
	for i := range uint64(100 * rowLen) {
		m.Set(i, 0)
	}
	if len(m.rows) != 100 {
		t.Errorf("%d rows", len(m.rows))
	}
	for i := range uint64(100 * rowLen) {
		m.Delete(i)
	}
	if len(m.rows) != 0 {
		t.Errorf("%d rows of nothing", len(m.rows))
	}
}
