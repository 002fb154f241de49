// Package serve predicts what an inference server has left for its KV cache:
// how many tokens fit, and how many requests of the maximal length at once.
//
// vLLM loads the weights, runs one forward pass of max_num_batched_tokens tokens
// and a sampler over max_num_seqs of them, and gives what is left of its share of
// the card to the cache. The package does the same without numbers: network.go
// and sampler.go allocate on the symbolic tensors of package eager what vLLM's
// modules allocate, and the allocator engine finds the peak. The rest is
// arithmetic of vLLM's sources, which changed from version to version:
//
//	version.go   what changed when
//	defaults.go  flags that were not given
//	cache.go     pages, groups of layers, blocks, tokens and concurrency
//	profile.go   the memory of the profiling run
//	serve.go     the answer; hf.go: the same for transformers' generate()
//
// docs/serve.md names the source of each rule and the public logs that the
// answers were compared with.
package serve
