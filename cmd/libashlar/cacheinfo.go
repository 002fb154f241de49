package main

// #include <stddef.h>
import "C"

// cacheInfo is [alloc.Allocator.CacheInfo] of a device.
func (l *library) cacheInfo(n int, guess uint64) (uint64, error) {
	all, err := l.ofDevice(n)
	for _, d := range all {
		if guess, err = d.alloc.CacheInfo(guess); err != nil {
			break
		}
	}
	return guess, err
}

//export ashlarGoCacheInfo
func ashlarGoCacheInfo(device C.int, largest *C.size_t, text **C.char) C.int {
	n, err := lib().cacheInfo(int(device), uint64(*largest))
	if err == nil {
		*largest = C.size_t(n)
	}
	return code(err, text)
}
