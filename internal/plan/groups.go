package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Groups of layers are written as their lengths: "-20,12*1" is twenty layers
// that are not recomputed, then twelve that are, one by one.

// maxLayers is more than any model has.
const maxLayers = 1 << 14

// parseGroups reads groups.
func parseGroups(text string) ([]int, error) {
	var out []int
	layers := 0
	for part := range strings.SplitSeq(text, ",") {
		times, length, ok := strings.Cut(part, "*")
		if !ok {
			times, length = "1", part
		}
		n, err := strconv.Atoi(times)
		k, err2 := strconv.Atoi(length)
		if err != nil || err2 != nil || n < 1 || n > maxLayers || k == 0 || max(k, -k) > maxLayers || layers+n*max(k, -k) > maxLayers {
			return nil, fmt.Errorf("%q: write lengths of runs of layers such as groups:-20,12*1; those not recomputed with a minus", text)
		}
		layers += n * max(k, -k)
		for range n {
			out = append(out, k)
		}
	}
	return out, nil
}

// groupsText writes groups so that parseGroups reads them.
func groupsText(groups []int) string {
	var parts []string
	for i := 0; i < len(groups); {
		n := 1
		for i+n < len(groups) && groups[i+n] == groups[i] {
			n++
		}
		part := strconv.Itoa(groups[i])
		if n > 1 {
			part = strconv.Itoa(n) + "*" + part
		}
		parts = append(parts, part)
		i += n
	}
	return strings.Join(parts, ",")
}

// layersOf is how many layers groups have.
func layersOf(groups []int) int {
	n := 0
	for _, k := range groups {
		n += max(k, -k)
	}
	return n
}

// recomputed are the numbers of the layers that are computed again.
func recomputed(groups []int) []int {
	var out []int
	at := 0
	for _, k := range groups {
		for i := at; i < at+k; i++ {
			out = append(out, i)
		}
		at += max(k, -k)
	}
	return out
}
