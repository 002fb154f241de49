package policy

import "slices"

// key orders the free blocks of an index: by size and then address, or by
// address alone with the size beside it.
type key struct{ first, second uint64 }

func (k key) less(l key) bool {
	return k.first < l.first || k.first == l.first && k.second < l.second
}

// item is a free block in an index.
type item struct {
	key
	block int32
}

// bucketSize is how many items lie in a row: few enough to move, enough to keep
// the list of buckets short.
const bucketSize = 64

// bucket is a row of items in order.
type bucket struct {
	n     int
	most  uint64 // the largest second part; kept only where an index tracks it
	items [bucketSize]item
}

// index is an ordered set of free blocks: rows of items, and the last key of each
// row beside them.
type index struct {
	lasts   []item // their keys alone count
	buckets []*bucket
	unused  []*bucket
	count   int
	// tracks keeps bucket.most, for searches by address.
	tracks bool
}

// notBelow returns the place of the first item that is not below a key.
func notBelow(items []item, k key) int {
	low, high := 0, len(items)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if items[mid].less(k) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// at returns the bucket whose range a key belongs to.
func (x *index) at(k key) int { return notBelow(x.lasts, k) }

// position returns the place of the first item of a bucket that is not below a key.
func (b *bucket) position(k key) int { return notBelow(b.items[:b.n], k) }

// insert adds a block.
func (x *index) insert(k key, block int32) {
	x.count++
	i := x.at(k)
	if i == len(x.buckets) {
		if i == 0 {
			x.buckets, x.lasts = append(x.buckets, x.newBucket()), append(x.lasts, item{key: k})
		} else {
			i--
			x.lasts[i].key = k
		}
	}
	b := x.buckets[i]
	if b.n == bucketSize {
		x.split(i)
		if x.lasts[i].less(k) {
			i++
		}
		b = x.buckets[i]
	}
	at := b.position(k)
	copy(b.items[at+1:b.n+1], b.items[at:b.n])
	b.items[at] = item{k, block}
	b.n++
	if x.tracks && k.second > b.most {
		b.most = k.second
	}
}

func (x *index) newBucket() *bucket {
	if n := len(x.unused); n > 0 {
		b := x.unused[n-1]
		x.unused = x.unused[:n-1]
		return b
	}
	return new(bucket)
}

// split makes two buckets of a full one.
func (x *index) split(i int) {
	b, upper := x.buckets[i], x.newBucket()
	const half = bucketSize / 2
	upper.n = copy(upper.items[:], b.items[half:])
	b.n = half
	x.buckets = slices.Insert(x.buckets, i+1, upper)
	x.lasts = slices.Insert(x.lasts, i, b.items[half-1])
	if x.tracks {
		b.measure()
		upper.measure()
	}
}

// measure finds the largest second part.
func (b *bucket) measure() {
	b.most = 0
	for i := range b.items[:b.n] {
		b.most = max(b.most, b.items[i].second)
	}
}

// remove takes a block out. It reports whether the block was there.
func (x *index) remove(k key) bool {
	i := x.at(k)
	if i == len(x.buckets) {
		return false
	}
	b := x.buckets[i]
	at := b.position(k)
	if at == b.n || b.items[at].key != k {
		return false
	}
	x.removeAt(i, at)
	return true
}

func (x *index) removeAt(i, at int) {
	b := x.buckets[i]
	gone := b.items[at].second
	copy(b.items[at:b.n-1], b.items[at+1:b.n])
	b.n--
	x.count--
	switch {
	case b.n == 0:
		x.drop(i)
		return
	case at == b.n:
		x.lasts[i] = b.items[b.n-1]
	}
	if x.tracks && gone == b.most {
		b.measure()
	}
	if b.n < bucketSize/4 && i+1 < len(x.buckets) && b.n+x.buckets[i+1].n <= bucketSize*3/4 {
		x.join(i)
	}
}

// join makes one bucket of two.
func (x *index) join(i int) {
	b, next := x.buckets[i], x.buckets[i+1]
	b.n += copy(b.items[b.n:], next.items[:next.n])
	b.most = max(b.most, next.most)
	x.lasts[i] = x.lasts[i+1]
	x.drop(i + 1)
}

// drop forgets a bucket.
func (x *index) drop(i int) {
	b := x.buckets[i]
	b.n, b.most = 0, 0
	x.unused = append(x.unused, b)
	x.buckets = slices.Delete(x.buckets, i, i+1)
	x.lasts = slices.Delete(x.lasts, i, i+1)
}

// ceiling returns the first block that is not below a key, or noBlock.
func (x *index) ceiling(k key) int32 {
	i := x.at(k)
	if i == len(x.buckets) {
		return noBlock
	}
	b := x.buckets[i]
	return b.items[b.position(k)].block
}

// until returns the first block from one key on and below another that is right, or
// noBlock.
func (x *index) until(from, end key, right func(int32) bool) int32 {
	for i := x.at(from); i < len(x.buckets); i++ {
		b := x.buckets[i]
		for at := b.position(from); at < b.n; at++ {
			switch {
			case !b.items[at].less(end):
				return noBlock
			case right(b.items[at].block):
				return b.items[at].block
			}
		}
	}
	return noBlock
}

// takeCeiling is ceiling, and removes the block.
func (x *index) takeCeiling(k key) int32 {
	i := x.at(k)
	if i == len(x.buckets) {
		return noBlock
	}
	b := x.buckets[i]
	at := b.position(k)
	block := b.items[at].block
	x.removeAt(i, at)
	return block
}

// fitting returns the first block at or after an address whose size is enough, in
// an index by address; or noBlock.
func (x *index) fitting(from, size uint64) int32 {
	k := key{first: from}
	for i := x.at(k); i < len(x.buckets); i++ {
		b := x.buckets[i]
		if b.most < size {
			continue
		}
		for at := b.position(k); at < b.n; at++ {
			if b.items[at].second >= size {
				return b.items[at].block
			}
		}
	}
	return noBlock
}

// replace puts a block in the place of another one, which has the same in the order.
func (x *index) replace(k, by key, block int32) {
	i := x.at(k)
	b := x.buckets[i]
	at := b.position(k)
	b.items[at] = item{by, block}
	if at == b.n-1 {
		x.lasts[i].key = by
	}
	if x.tracks && (k.second == b.most || by.second > b.most) {
		b.measure()
	}
}

// each calls f for all blocks in order.
func (x *index) each(f func(k key, block int32)) {
	for _, b := range x.buckets {
		for i := range b.items[:b.n] {
			f(b.items[i].key, b.items[i].block)
		}
	}
}
