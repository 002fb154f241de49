package hf

// cache keeps keys and values of generation.
type cache struct{}
