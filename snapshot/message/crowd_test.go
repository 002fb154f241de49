package message

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A text that is made of messages is read to a bound, from its end.
func TestCrowded(t *testing.T) {
	var log strings.Builder
	n := 0
	for ; n < maxPlaces/(2*len(anchors)); n++ {
		fmt.Fprintf(&log, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 10.25 MiB is free.\n", n%1000)
	}
	text := log.String()
	all, err := Parse(text)
	if err != nil || len(all) != n {
		t.Fatalf("%d of %d messages, %v", len(all), n, err)
	}
	text = strings.Repeat("out of memory ", 4*maxPlaces) + "\n" + text
	all, err = Parse(text)
	if !errors.Is(err, ErrCrowded) {
		t.Errorf("%v", err)
	}
	if len(all) < n || all[len(all)-1].Line != n+1 {
		t.Errorf("%d of %d messages are left, the last one in line %d", len(all), n, all[len(all)-1].Line)
	}
}

// Where a long passage is parted, no message is lost and none comes twice.
func TestLongPassage(t *testing.T) {
	var log strings.Builder
	n := 0
	for log.Len() < longPassage+longPassage/4 {
		n++
		fmt.Fprintf(&log, "memory of step %d\nmemory\nCUDA out of memory. Tried to allocate\n %d.00 MiB. GPU 0 has a total capacity of 79.11 GiB of\n which 10.25 MiB is free.\n", n, n%1000)
	}
	all, err := Parse(log.String())
	if err != nil || len(all) != n {
		t.Errorf("%d of %d messages, %v", len(all), n, err)
	}
}
