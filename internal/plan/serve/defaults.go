package serve

import "strings"

// batched is max_num_batched_tokens, the length of the profiling run.
func (r *Request) batched() int64 {
	if r.BatchedTokens > 0 {
		return r.BatchedTokens
	}
	if r.v1() {
		n := int64(2048)
		if r.large() {
			n = 8192
		}
		if r.Version.since(13, 0) {
			n = min(n, r.seqs()*r.MaxModelLen)
		}
		return n
	}
	if r.chunked() {
		if r.Version.since(6, 5) {
			return 2048
		}
		return 512
	}
	return max(r.MaxModelLen, 2048)
}

// chunked reports whether V0 cuts prompts into chunks: above 32K it does, from
// 0.5.4 on.
func (r *Request) chunked() bool { return r.Version.since(5, 4) && r.MaxModelLen > 32768 }

// seqs is max_num_seqs, the rows of the profiling run's sampler.
func (r *Request) seqs() int64 {
	switch {
	case r.MaxSeqs > 0:
		return r.MaxSeqs
	case r.v1() && r.large():
		return 1024
	}
	return 256
}

// large reports whether the card has V1's defaults for large ones.
func (r *Request) large() bool {
	const least = 70 << 30
	a100 := strings.Contains(strings.ToLower(r.Card.Title), "a100")
	return r.Card.TotalBytes >= least && !(a100 && r.Version.since(9, 0))
}

// v1 reports whether the V1 engine runs: it needs compute capability 8, and V0
// could still be chosen up to 0.10.
func (r *Request) v1() bool {
	if r.Version.since(11, 0) {
		return true
	}
	return r.Version.v1() && !r.V0 && r.Card.Major >= 8
}
