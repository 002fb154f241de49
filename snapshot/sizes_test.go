package snapshot

import (
	"fmt"
	"strings"
	"testing"
)

// Numbers that no size can be are refused wherever a size stands, in one line
// that says what and where.
func TestSizesRefused(t *testing.T) {
	block := `{"size":512,"state":"inactive","requested_size":%s}`
	segment := `{"segments":[{"address":0,"total_size":%s,"blocks":[]}]}`
	for key, file := range map[string]string{
		"total_size":     segment,
		"allocated_size": strings.Replace(segment, `:%s`, `:512,"allocated_size":%s`, 1),
		"active_size":    strings.Replace(segment, `:%s`, `:512,"active_size":%s`, 1),
		"requested_size": strings.Replace(segment, `:%s`, `:512,"requested_size":%s`, 1),
		"size":           `{"device_traces":[[{"action":"alloc","addr":0,"size":%s}]]}`,
		"size of a map":  `{"device_traces":[[{"size":%s,"addr":0,"action":"segment_map"}]]}`,

		"requested_size of a block": fmt.Sprintf(`{"segments":[{"address":0,"total_size":512,"blocks":[%s]}]}`, block),
		"size of a block":           `{"segments":[{"address":0,"total_size":512,"blocks":[{"state":"inactive","size":%s}]}]}`,
		"total_size in host memory": strings.Replace(segment, "segments", "host_segments", 1),
	} {
		for _, n := range []string{"-1", "-512", "9223372036854775808", "18446744073709551615", "70368744177665", "-9223372036854775808"} {
			key, _, _ := strings.Cut(key, " ")
			_, err := read1([]byte(fmt.Sprintf(file, n)))
			if err == nil || !strings.HasPrefix(err.Error(), "file: before byte ") || strings.Contains(err.Error(), "\n") ||
				!strings.HasSuffix(err.Error(), fmt.Sprintf("has a %q that is %s instead of a size, from 0 to 2^46: the file is damaged, record it again", key, n)) {
				t.Errorf("%s: %v", fmt.Sprintf(file, n), err)
			}
		}
		if _, err := read1([]byte(fmt.Sprintf(file, "70368744177664"))); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A request may fail because its size is absurd: that is what there is to tell.
func TestSizeOfFailure(t *testing.T) {
	for _, n := range []string{"18446744073709551104", "-512"} { // Python writes the one, C++ the other
		f, err := read1([]byte(`{"device_traces":[[{"action":"oom","device_free":0,"size":` + n + `}]]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Traces[0].Events.At(0).Size; got != 1<<64-512 {
			t.Errorf("%s is read as %d", n, got)
		}
	}
}
