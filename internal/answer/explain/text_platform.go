package explain

import (
	"math"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// apple is the platform whose allocator is not PyTorch's caching one.
const apple = "MPS"

// allocatorOf returns what a message shows of the allocator that wrote it.
func allocatorOf(o *message.OOM) answer.Allocator {
	var a answer.Allocator
	if o == nil {
		return a
	}
	a.Platform = answer.PlatformOf(o)
	first, last := releases(o.Version)
	if oldest, ok := strings.CutPrefix(o.Version, "up to "); ok {
		_, last = releases(oldest)
		first = 1
	}
	if first > 0 {
		a.Writer = pytorch.Range{First: pytorch.Version(first), Last: pytorch.Newest}
		if last < math.MaxInt {
			a.Writer.Last = pytorch.Version(last)
		}
	}
	return a
}
