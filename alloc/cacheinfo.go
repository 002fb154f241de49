package alloc

// CacheInfo answers PyTorch's question of the same name: at least how large is
// the largest piece of memory that a request might get? It is the largest free
// block of any pool and stream, private pools too, or the caller's own guess if
// that is larger. A guess of 0 stands for what the device has free. Whether the
// pool, the stream or a limit allows the caller to have it is not looked at;
// PyTorch's libraries ask to leave out algorithms that have no chance.
func (a *Allocator) CacheInfo(guess uint64) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.recall(true); err != nil {
		return 0, err
	}
	if guess == 0 {
		free, _, err := a.dev.MemInfo()
		if err != nil {
			return 0, err
		}
		guess = free
	}
	return max(guess, a.Serial().LargestFree()), nil
}
