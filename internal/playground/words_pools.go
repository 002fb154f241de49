package playground

import (
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// refused tells what the engine refuses to do, if its answer says so.
func (g *game) refused(answer string) bool {
	_, problem, refused := strings.Cut(answer, "error: ")
	if refused {
		g.say(sayNothing, "the engine refuses: %s.", strings.TrimSpace(problem))
	}
	return refused
}

// sayPrivate explains a step about a private pool.
func (g *game) sayPrivate(step, pool, answer string) {
	if g.refused(answer) {
		return
	}
	switch step {
	case "pool":
		g.say(sayPrivatePool, "%s is a torch.cuda.MemPool: what is allocated while it is in use lies in segments of its own.", pool)
	case "begin":
		g.say(sayPrivatePool, "from here on requests go to %s (torch.cuda.use_mem_pool): the free blocks of the default pools are not looked at.", pool)
	case "end":
		g.say(sayPrivatePool, "requests go to the default pools again. What %s has cached serves only requests in it, and empty_cache leaves it alone as long as the pool lives.", pool)
	case "close":
		g.say(sayPrivatePool, "%s is deleted: what is free in its segments goes back, now or when the rest is freed.", pool)
	}
}

// sayPrivateCache says what empty_cache has left in private pools.
func (g *game) sayPrivateCache() {
	var bytes uint64
	for _, s := range g.runner.Allocator.Segments() {
		for _, b := range s.Blocks {
			if s.Pool != (alloc.PoolID{}) && b.State == alloc.Inactive {
				bytes += b.Size
			}
		}
	}
	if bytes > 0 {
		g.say(sayStranded, "%s free in private pools stays with them.", units.Size(bytes))
	}
}
