package message

import (
	"slices"
	"strings"
)

// anchors are words, without blanks, of which every message has at least one.
var anchors = []string{
	"outofmemory", "triedtoallocate", "totalcapac", "oftheallocatedmemory", "isallocatedbypytorch", "allocationondevice",
	"alloc_failed", "cudacalloc", "out_of_memory", "failedwithoom",
}

// places returns the offsets of the anchors in text, in order.
func places(text string) []int {
	var all []int
	for _, p := range passages(text) {
		plain := Plain(text[p.start:p.end])
		s := squeeze(plain)
		for _, a := range anchors {
			for i := 0; ; i += len(a) {
				j := strings.Index(s.text[i:], a)
				if j < 0 {
					break
				}
				i += j
				all = append(all, p.start+offset(s, plain, i))
			}
		}
	}
	slices.Sort(all)
	return all
}

type passage struct{ start, end int }

// stems are parts of words such that a message, however broken, has one in
// every few lines.
var stems = []string{"emory", "EMORY", "ut of", "llocat", "LLOC", "iB", "OOM", "alloc "}

// passages returns the parts of text that may hold an anchor: the lines with
// a stem and those beside them. Most of a log is none, and need not be cleaned.
func passages(text string) []passage {
	var at []int
	for _, stem := range stems {
		for i := 0; ; i += len(stem) {
			j := strings.Index(text[i:], stem)
			if j < 0 {
				break
			}
			i += j
			at = append(at, i)
		}
	}
	slices.Sort(at)
	var all []passage
	for _, i := range at {
		if len(all) > 0 && i < all[len(all)-1].end {
			continue
		}
		start, end := neighbours(text, i)
		if len(all) > 0 && start <= all[len(all)-1].end {
			all[len(all)-1].end = end
			continue
		}
		all = append(all, passage{start, end})
	}
	return all
}

// neighbours returns the bounds of the lines around i.
func neighbours(text string, i int) (start, end int) {
	const lines, longest = 3, 2048
	first, last := max(0, i-longest), min(len(text), i+longest)
	start, end = i, i
	for range lines {
		start = first + max(0, strings.LastIndexByte(text[first:start], '\n'))
		if j := strings.IndexByte(text[end:last], '\n'); j >= 0 {
			end += j + 1
		} else {
			end = last
		}
	}
	return start, end
}
