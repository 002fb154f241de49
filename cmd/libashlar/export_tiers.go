package main

// #include <stddef.h>
// #include <stdint.h>
import "C"

import (
	"errors"
	"unsafe"

	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
)

//export ashlarGoRegion
func ashlarGoRegion(device C.int, name *C.char, slot *C.int, text **C.char) C.int {
	n, err := lib().enterRegion(int(device), C.GoString(name))
	*slot = C.int(n)
	return code(err, text)
}

//export ashlarGoRegionDelete
func ashlarGoRegionDelete(device C.int, name *C.char, text **C.char) C.int {
	return code(lib().deleteRegion(int(device), C.GoString(name)), text)
}

// moved is the answer of a call that moves memory: what was moved, or why not.
func moved(r tier.Report, err error, report, text **C.char) C.int {
	if err == nil {
		*report = C.CString(reportText(r))
	}
	return code(err, text)
}

// cameBack is the answer of a call that needs device memory, and may find too little.
func cameBack(r tier.Report, err error, report, text **C.char) C.int {
	c := moved(r, err, report, text)
	if errors.Is(err, driver.ErrOutOfMemory) {
		return codeOOM
	}
	return c
}

//export ashlarGoPark
func ashlarGoPark(device C.int, name *C.char, keep C.int, report, text **C.char) C.int {
	r, err := lib().park(int(device), C.GoString(name), keep != 0)
	return moved(r, err, report, text)
}

//export ashlarGoRestore
func ashlarGoRestore(device C.int, name *C.char, report, text **C.char) C.int {
	r, err := lib().restore(int(device), C.GoString(name))
	return cameBack(r, err, report, text)
}

// addresses are blocks as C gives them.
func addresses(blocks unsafe.Pointer, count C.size_t) []uint64 {
	return append([]uint64{}, unsafe.Slice((*uint64)(blocks), int(count))...)
}

//export ashlarGoMoveBlocks
func ashlarGoMoveBlocks(device C.int, blocks unsafe.Pointer, count C.size_t, out C.int, report, text **C.char) C.int {
	r, err := lib().moveBlocks(int(device), addresses(blocks, count), out != 0)
	if out != 0 {
		return moved(r, err, report, text)
	}
	return cameBack(r, err, report, text)
}

//export ashlarGoFetch
func ashlarGoFetch(device C.int, blocks unsafe.Pointer, count C.size_t, report, text **C.char) C.int {
	r, err := lib().fetch(int(device), addresses(blocks, count))
	return moved(r, err, report, text)
}

//export ashlarGoCold
func ashlarGoCold(device C.int, blocks unsafe.Pointer, count C.size_t, text **C.char) C.int {
	return code(lib().name(int(device), addresses(blocks, count), (*tier.Space).Cold), text)
}

//export ashlarGoGuess
func ashlarGoGuess(device C.int, blocks unsafe.Pointer, count C.size_t, cold C.int, text **C.char) C.int {
	return code(lib().guess(int(device), addresses(blocks, count), cold != 0), text)
}

//export ashlarGoSetRegistered
func ashlarGoSetRegistered(registered C.int) { lib().setRegistered(registered != 0) }

//export ashlarGoDropped
func ashlarGoDropped(device C.int, addr C.uint64_t, text **C.char) C.int {
	behind, err := lib().behind(int(device), uint64(addr))
	if code(err, text) != codeOK {
		return -1
	}
	return C.int(behind)
}

//export ashlarGoStep
func ashlarGoStep(device C.int, report, text **C.char) C.int {
	r, err := lib().step(int(device))
	return moved(r, err, report, text)
}

//export ashlarGoTiers
func ashlarGoTiers(device C.int, text **C.char) *C.char {
	s, err := lib().tiersJSON(int(device))
	return result(s, err, text)
}
