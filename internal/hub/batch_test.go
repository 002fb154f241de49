package hub

import (
	"strconv"
	"testing"
)

// Reading many messages gives each of a subject once, from any of them on, however
// many there are and whoever owns the folder.
func TestAllFrom(t *testing.T) { eachPlace(t, testAllFrom) }

func testAllFrom(t *testing.T, o Options) {
	owner := open(t, o)
	stream, err := owner.Stream(t.Context(), testStream)
	if err != nil {
		t.Fatal(err)
	}
	const many = 2*firstBatch + mostBatch
	var last [2]uint64
	for i := range many {
		for j, subject := range []string{"a", "b"} {
			if last[j], err = stream.Append(t.Context(), subject, []byte(strconv.Itoa(i)), last[j]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, h := range []*Hub{owner, open(t, o)} {
		s, err := h.Stream(t.Context(), testStream)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []int{0, 1, firstBatch, firstBatch + 1, many - 1, many} {
			n := from
			for m, err := range s.AllFrom(t.Context(), "b", uint64(2*from+1)) { // a and b take turns
				if err != nil {
					t.Fatal(err)
				}
				if string(m.Data) != strconv.Itoa(n) || m.Subject != "b" || m.Seq != uint64(2*n+2) || m.Time.IsZero() {
					t.Fatalf("from %d: %+v, want number %d", from, m, n)
				}
				n++
			}
			if n != many {
				t.Errorf("from %d: the last is %d of %d", from, n, many)
			}
		}
		for m, err := range s.All(t.Context(), "a") {
			if err != nil || string(m.Data) == "40" {
				break // the rest is not read
			}
		}
	}
}
