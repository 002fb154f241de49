package playground

import "fmt"

// Experiment is a lesson: lines to be played, and what to look for.
type Experiment struct {
	Name  string   `json:"name"` // stable
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Lines []string `json:"lines"`
}

// Experiments are the lessons, in the order in which they teach.
func Experiments() []Experiment {
	return []Experiment{
		pools(), warmUp(), everySecond(), variedSizes(), rounding(),
		emptyCache(), twoStreams(), memPools(), maxSplit(), expandable(), collection(), tenants(),
	}
}

// lines gathers the lines of an experiment.
type lines []string

func (l *lines) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *lines) chapter(format string, args ...any) { l.add("# "+format, args...) }

// holes allocates tensors and frees every second one.
func (l *lines) holes(tensors int, size, words string) {
	l.chapter("%d tensors of %s", tensors, words)
	for i := 1; i <= tensors; i++ {
		l.add("alloc t%d %s", i, size)
	}
	l.chapter("every second one is freed")
	for i := 2; i <= tensors; i += 2 {
		l.add("free t%d", i)
	}
}

func pools() Experiment {
	return Experiment{
		Name: "pools", Title: "Two pools, three kinds of segments",
		Text: "What is at most 1 MiB after rounding comes from the small pool, the rest from the large one. They never share a segment, " +
			"however much is free in the other.",
		Lines: []string{
			"device total=256MiB",
			"# small", "alloc a 1000", "alloc b 300KiB", "alloc c 1MiB",
			"# large", "alloc d 1048577", "alloc e 6MiB",
			"# from 10 MiB on", "alloc f 10485248", "alloc g 10485249", "alloc h 11MiB",
			"# each to its own", "free e", "alloc i 900KiB", "alloc j 2MiB",
		},
	}
}

// warmUp is a loop as training has it: some blocks stay, the others come and go
// in the same order every round.
func warmUp() Experiment {
	var l lines
	l.add("device total=512MiB")
	l.chapter("weights")
	for i, size := range []string{"24MiB", "6MiB", "6MiB", "64KiB"} {
		l.add("alloc w%d %s", i+1, size)
	}
	activations := []string{"3MiB", "12MiB", "96KiB", "3MiB", "12MiB", "96KiB", "7MiB", "512KiB", "1500KiB", "5000"}
	for round := 1; round <= 12; round++ {
		l.chapter("round %d", round)
		for i, size := range activations {
			l.add("alloc x%d %s", i+1, size)
		}
		for i := len(activations); i > 0; i-- {
			l.add("free x%d", i)
		}
	}
	return Experiment{
		Name: "warm-up", Title: "The warm-up of the cache",
		Text: "The first round asks the driver, which takes tens of microseconds each time. From the second on every request finds its block " +
			"from the round before. Watch the hit rate of the round, and the sum.",
		Lines: l,
	}
}

func everySecond() Experiment {
	const tensors = 20
	var l lines
	l.add("device total=256MiB limit=100MiB")
	l.holes(tensors, "4MiB", "4 MiB")
	l.chapter("one large request")
	l.add("alloc large 24MiB")
	l.chapter("the others are freed too")
	for i := 1; i <= tensors; i += 2 {
		l.add("free t%d", i)
	}
	l.chapter("once more")
	l.add("alloc large 24MiB")
	return Experiment{
		Name: "every-second", Title: "Every second tensor freed, then one large request",
		Text: "Half of the memory is free, and a request for much less fails: it is free in holes. Memory cannot be moved together; " +
			"it helps only to free the neighbours.",
		Lines: l,
	}
}

func variedSizes() Experiment {
	var l lines
	l.add("device total=512MiB limit=128MiB")
	l.chapter("each one a little longer than the one before")
	for i, mib := range []int{12, 14, 16, 18, 20, 22} {
		l.add("alloc s%d %dMiB", i+1, mib)
		l.add("free s%d", i+1)
	}
	l.chapter("one more")
	l.add("alloc s7 30MiB")
	l.add("free s7")
	l.chapter("the longest first")
	for i, mib := range []int{30, 28, 26, 20, 14} {
		l.add("alloc r%d %dMiB", i+1, mib)
		l.add("free r%d", i+1)
	}
	return Experiment{
		Name: "varied-sizes", Title: "Varied sizes",
		Text: "Batches of varied length. If each is longer than all before, no cached block is ever large enough, and reserved memory is the sum " +
			"of all, though only one is alive at a time. The longest first, and one block serves them all.",
		Lines: l,
	}
}

func rounding() Experiment {
	sizes := []int{33, 35, 37, 39}
	var l lines
	l.add("device total=512MiB")
	l.chapter("multiples of 512 bytes")
	for i, mib := range sizes {
		l.add("alloc a%d %dMiB", i+1, mib)
		l.add("free a%d", i+1)
	}
	l.add("empty")
	l.chapter("four steps from each power of two to the next")
	l.add("set roundup_power2_divisions:4")
	for i, mib := range sizes {
		l.add("alloc b%d %dMiB", i+1, mib)
		l.add("free b%d", i+1)
	}
	l.add("alloc c 600KiB")
	return Experiment{
		Name: "rounding", Title: "Rounding that makes sizes alike",
		Text: "Four sizes that differ a little need four segments. Rounded up to few sizes they share one, at the price of what is lost inside " +
			"the blocks (the part that is marked).",
		Lines: l,
	}
}

func emptyCache() Experiment {
	var l lines
	l.add("device total=256MiB")
	l.chapter("three segments of the large pool")
	for i := 1; i <= 8; i++ {
		l.add("alloc t%d 5MiB", i)
	}
	l.add("alloc big 40MiB")
	l.chapter("all but one are freed")
	l.add("free big")
	for _, i := range []int{1, 2, 3, 4, 5, 7, 8} {
		l.add("free t%d", i)
	}
	l.chapter("empty_cache")
	l.add("empty")
	l.chapter("the last one")
	l.add("free t6")
	l.add("empty")
	return Experiment{
		Name: "empty-cache", Title: "What empty_cache can give back",
		Text:  "Only whole segments go back to the driver. One live block of 5 MiB keeps the 15 MiB beside it.",
		Lines: l,
	}
}

func twoStreams() Experiment {
	return Experiment{
		Name: "two-streams", Title: "Two streams and record_stream",
		Text: "A free block serves only the stream it was allocated on. If another stream uses it, record_stream tells the allocator, and the " +
			"block waits after its free until that stream is done.",
		Lines: []string{
			"device total=256MiB events=manual",
			"# a stream does not take from the other", "alloc a 12MiB stream=1", "free a", "alloc b 12MiB stream=2", "alloc c 12MiB stream=1",
			"# used by stream 2 as well", "record c 2", "free c", "alloc d 12MiB stream=1",
			"# stream 2 is done", "complete 2", "alloc e 12MiB stream=1",
			"# its own stream needs no note", "record e 1", "free e",
		},
	}
}

func maxSplit() Experiment {
	var l lines
	l.add("device total=512MiB")
	part := func(large, small, again string) {
		l.add("alloc %s 100MiB", large)
		l.add("free %s", large)
		for i := 1; i <= 3; i++ {
			l.add("alloc %s%d 12MiB", small, i)
		}
		l.add("alloc %s 100MiB", again)
	}
	l.chapter("the default: every block may be split")
	part("large1", "a", "again1")
	l.chapter("all is freed")
	for _, name := range []string{"a1", "a2", "a3", "again1"} {
		l.add("free %s", name)
	}
	l.add("empty")
	l.chapter("blocks of 50 MiB and more are not split")
	l.add("set max_split_size_mb:50")
	part("large2", "b", "again2")
	l.chapter("nearly as large, and not nearly")
	l.add("free again2")
	l.add("alloc near 90MiB")
	l.add("free near")
	l.add("alloc far 60MiB")
	return Experiment{
		Name: "max-split", Title: "max_split_size_mb keeps large blocks whole",
		Text: "Small requests nibble at the one large free block, and the next large request needs new memory. With max_split_size_mb large blocks " +
			"are left to large requests, and are used only if they are not much too large.",
		Lines: l,
	}
}

func expandable() Experiment {
	var l lines
	l.add("device total=256MiB limit=128MiB conf=expandable_segments:True")
	l.chapter("each one a little longer than the one before")
	for i, mib := range []int{12, 22, 30, 45} {
		l.add("alloc s%d %dMiB", i+1, mib)
		l.add("free s%d", i+1)
	}
	l.chapter("every second one freed, then a large request")
	for i := 1; i <= 10; i++ {
		l.add("alloc t%d 6MiB", i)
	}
	for i := 2; i <= 10; i += 2 {
		l.add("free t%d", i)
	}
	l.add("alloc large 24MiB")
	l.chapter("empty_cache gives back whole granules")
	l.add("free large")
	l.add("free t9")
	l.add("empty")
	l.add("free t7")
	l.add("empty")
	return Experiment{
		Name: "expandable", Title: "Expandable segments",
		Text: "One segment grows where it ends instead of new ones being made: sizes that vary share it. " +
			"Holes between live blocks stay holes here too.",
		Lines: l,
	}
}

func collection() Experiment {
	return Experiment{
		Name: "garbage-collection", Title: "Garbage collection under a limit",
		Text: "With garbage_collection_threshold, segments that were not used for long are given back before new memory is asked for, once reserved memory " +
			"is above that part of the limit. What was split is out of its reach.",
		Lines: []string{
			"device total=1GiB limit=400MiB conf=garbage_collection_threshold:0.5",
			"# three segments, and one that is shared", "alloc w1 2MiB", "alloc a 60MiB", "alloc b 50MiB", "alloc c 40MiB",
			"# freed one after the other, with requests between", "free a", "alloc w2 2MiB", "alloc w3 2MiB", "free b",
			"alloc w4 2MiB", "free c",
			"# below the threshold", "alloc d 70MiB",
			"# above it", "alloc e 80MiB", "alloc f 90MiB",
			"# nothing is left to collect", "alloc g 200MiB",
		},
	}
}

func memPools() Experiment {
	return Experiment{
		Name: "mem-pools", Title: "Private pools keep memory apart",
		Text: "What is allocated inside use_mem_pool, or while a CUDA graph is captured, lies in segments of its own. Its cache serves nobody else, " +
			"and empty_cache cannot give it back while the pool lives.",
		Lines: []string{
			"device total=256MiB limit=80MiB",
			"# the default pool has a cache", "alloc a 20MiB", "free a",
			"# a pool of its own", "pool p", "begin p", "alloc b 20MiB", "alloc c 4MiB", "end p",
			"# freed, its memory stays in it", "free b", "alloc d 20MiB", "empty", "alloc e 24MiB",
			"# inside it is used again", "begin p", "alloc f 20MiB", "end p",
			"# when the pool goes", "free f", "free c", "close p", "empty", "alloc g 24MiB",
		},
	}
}

func tenants() Experiment {
	return Experiment{
		Name: "tenants", Title: "Tenants share a device",
		Text: "Two allocators on one device, one with a guarantee. What is guaranteed to one nobody else gets, even while it is not used; " +
			"beyond that they compete, and the cache of one is released for the other.",
		Lines: []string{
			"device total=256MiB limit=100MiB", "tenant serve guarantee=40MiB priority=10", "tenant train",
			"# the trainer grows until it fails",
			"alloc x1 20MiB tenant=train", "alloc x2 20MiB tenant=train", "alloc x3 20MiB tenant=train", "alloc x4 20MiB tenant=train",
			"# the server gets what is guaranteed to it", "alloc s1 20MiB tenant=serve", "alloc s2 20MiB tenant=serve",
			"# more than that only if the others leave it", "alloc s3 20MiB tenant=serve", "free x1", "alloc s4 20MiB tenant=serve",
		},
	}
}
