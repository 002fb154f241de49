package message

import (
	"fmt"
	"math"
	"strings"
)

// A release is 100 × major + minor.
const newest = math.MaxInt

// clues are words of the message, without blanks, that identify releases.
var clues = []struct {
	words       string
	first, last int
}{
	{"alreadyallocated", 100, 200},
	{"cached", 100, 103},
	{"reservedintotalbypytorch", 104, 200},
	{"ifreservedmemoryis", 110, 200},
	{"capactyof", 201, 201},
	{"capacityof", 201, newest}, // corrected in the previews of 2.2
	{"butunallocated", 201, newest},
	{"islargetrysettingmax_split_size_mb", 201, 202},
	{"expandable_segments:true", 202, newest},
	{"allocatedinprivatepools", 204, newest},
	{"#environment-variables", 202, 210},
	{"pytorch_alloc_conf=", 210, 210},
	{"docs.pytorch.org", 211, newest},
	{"morethan1eb", 109, newest},
	{"wouldexceedallowedmemory", 200, newest},
	{"cudaruntimeerror(2)", 0, 100},
	{"failedwithoomondevice", 213, newest},
	{"preemptivelyreject", 212, newest},
	{"gpuhasatotalcapacityof", 203, 203}, // its raw byte for the device is not printed
}

// exceptions are types of the exception that identify releases.
var exceptions = map[string]struct{ first, last int }{
	"torch.cuda.OutOfMemoryError": {113, 204},
	"torch.OutOfMemoryError":      {204, newest},
	"torch.AcceleratorError":      {208, newest},
}

// guess names the releases that print such a message, text being the message
// without blanks. Ports to other devices keep old wordings, so they identify none.
func guess(o *OOM, text string) string {
	switch o.Platform {
	case "", "CUDA", "HIP":
	default:
		return ""
	}
	first, last := 0, newest
	narrow := func(f, l int) { first, last = max(first, f), min(last, l) }
	for _, c := range clues {
		if strings.Contains(text, c.words) {
			narrow(c.first, c.last)
		}
	}
	if e, ok := exceptions[o.Exception]; ok {
		narrow(e.first, e.last)
	}
	switch {
	case strings.HasSuffix(text, "gpu"):
		narrow(203, 203)
	case strings.HasSuffix(text, "allocationondevice"):
		narrow(203, 209)
	}
	switch {
	case first > last || first == 0 && last == newest:
		return ""
	case first == 0:
		return "up to " + release(last)
	case last == newest:
		return release(first) + "+"
	case first == last:
		return release(first)
	}
	return release(first) + "-" + release(last)
}

func release(n int) string { return fmt.Sprintf("%d.%d", n/100, n%100) }
