package main

/*
#cgo CFLAGS: -O2 -Wall -Wextra -Wno-unused-parameter
#cgo CXXFLAGS: -O2 -std=c++17
#cgo LDFLAGS: -ldl -pthread
#include <stdlib.h>
#include "ashlar.h"
#include "bridge.h"
typedef bool (*accept_fn)(void *ctx, void *stream);
*/
import "C"

import (
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func main() {}

// lib is the library: a process has one, made at the first call.
var lib = sync.OnceValue(func() *library { return newLibrary(cFront{}, lookupEnv) })

// lookupEnv asks C: in a library Go knows the environment that the process
// started with, and nothing of what a script has set since.
func lookupEnv(name string) (string, bool) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	v := C.getenv(n)
	if v == nil {
		return "", false
	}
	return C.GoString(v), true
}

// goText is a text of C's; most often there is none.
func goText(text *C.char) string {
	if text == nil {
		return ""
	}
	return C.GoString(text)
}

// fill writes an answer where C reads it.
func (a *answer) fill(r *C.struct_reply) {
	r.addr, r.size = C.uint64_t(a.lent.Addr), C.uint64_t(a.lent.Size)
	r.large, r.again = flag(a.lent.Large), flag(a.lent.Again)
	r.layout = C.uint64_t(a.lent.Layout)
	fillWaiting(&a.lent.Waiting, r)
	if a.text != "" {
		r.text = C.CString(a.text)
	}
	if a.note != "" {
		r.note = C.CString(a.note)
	}
	if e := a.oom; e != nil {
		r.tried, r.total, r.free = C.uint64_t(e.Segment), C.uint64_t(e.DeviceTotal), C.uint64_t(e.DeviceFree)
		if e.Limited {
			r.total = C.uint64_t(e.Limit)
		}
	}
}

func fillWaiting(w *alloc.Waiting, r *C.struct_reply) {
	r.waiting_seq = C.uint64_t(w.Seq)
	for k, s := range [2]*alloc.WaitingBlocks{&w.Small, &w.Large} {
		r.waiting[k] = C.struct_sums{blocks: C.int64_t(s.Blocks), bytes: C.int64_t(s.Bytes), requested: C.int64_t(s.Requested)}
	}
}

func flag(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

//export ashlarGoMalloc
func ashlarGoMalloc(device C.int, size, stream C.uint64_t, meta *C.char, r *C.struct_reply) C.int {
	var out answer
	code := lib().malloc(int(device), uint64(size), uint64(stream), goText(meta), &out)
	out.fill(r)
	return C.int(code)
}

//export ashlarGoFree
func ashlarGoFree(device C.int, addr C.uint64_t, meta *C.char, r *C.struct_reply) {
	var out answer
	lib().free(int(device), uint64(addr), goText(meta), &out)
	out.fill(r)
}

//export ashlarGoRecordStream
func ashlarGoRecordStream(device C.int, addr, stream C.uint64_t, text **C.char) C.int {
	return code(lib().recordStream(int(device), uint64(addr), uint64(stream)), text)
}

//export ashlarGoBeginPool
func ashlarGoBeginPool(device C.int, id1, id2 C.uint64_t, accept unsafe.Pointer, ctx C.uintptr_t, text **C.char) C.int {
	filter := func(stream uint64) bool {
		return bool(C.front_accepts(C.accept_fn(accept), ctx, C.uint64_t(stream)))
	}
	return code(lib().beginPool(int(device), alloc.PoolID{First: uint64(id1), Second: uint64(id2)}, filter), text)
}

//export ashlarGoEndPool
func ashlarGoEndPool(device C.int, id1, id2 C.uint64_t, text **C.char) C.int {
	return code(lib().endPool(int(device), alloc.PoolID{First: uint64(id1), Second: uint64(id2)}), text)
}

//export ashlarGoReleasePool
func ashlarGoReleasePool(device C.int, id1, id2 C.uint64_t, text **C.char) C.int {
	return code(lib().releasePool(int(device), alloc.PoolID{First: uint64(id1), Second: uint64(id2)}), text)
}

// code turns an error into a code and a text that C frees.
func code(err error, text **C.char) C.int {
	if err == nil {
		return codeOK
	}
	*text = C.CString(err.Error())
	return codeFailed
}

// result is a string that the caller frees, or null and a text.
func result(s string, err error, text **C.char) *C.char {
	if err != nil {
		code(err, text)
		return nil
	}
	return C.CString(s)
}

//export ashlarGoInit
func ashlarGoInit(_ C.int, text **C.char) C.int { return code(lib().configured(), text) }

//export ashlarGoConfigure
func ashlarGoConfigure(conf *C.char, text **C.char) C.int {
	return code(lib().configure(C.GoString(conf)), text)
}

//export ashlarGoSettings
func ashlarGoSettings(text **C.char) *C.char {
	s, err := lib().settingsJSON()
	return result(s, err, text)
}

//export ashlarGoEmptyCache
func ashlarGoEmptyCache(text **C.char) C.int { return code(lib().emptyCache(), text) }

//export ashlarGoSetFraction
func ashlarGoSetFraction(device C.int, fraction C.double, text **C.char) C.int {
	return code(lib().setFraction(int(device), float64(fraction)), text)
}

//export ashlarGoGetFraction
func ashlarGoGetFraction(device C.int, text **C.char) C.double {
	f, err := lib().getFraction(int(device))
	code(err, text)
	return C.double(f)
}

//export ashlarGoStats
func ashlarGoStats(device C.int, text **C.char) *C.char {
	s, err := lib().statsJSON(int(device))
	return result(s, err, text)
}

//export ashlarGoResetPeaks
func ashlarGoResetPeaks(device C.int, text **C.char) C.int {
	return code(lib().resetPeaks(int(device)), text)
}

//export ashlarGoResetSums
func ashlarGoResetSums(device C.int, text **C.char) C.int {
	return code(lib().resetSums(int(device)), text)
}

//export ashlarGoRecordHistory
func ashlarGoRecordHistory(on C.int, max C.uint64_t, text **C.char) C.int {
	return code(lib().recordHistory(historyMode{on: on != 0, max: entries(uint64(max))}), text)
}

//export ashlarGoSnapshotWrite
func ashlarGoSnapshotWrite(path *C.char, device C.int, text **C.char) C.int {
	return code(lib().writeSnapshot(C.GoString(path), int(device)), text)
}

//export ashlarGoSnapshotPickle
func ashlarGoSnapshotPickle(device C.int, length *C.size_t, text **C.char) *C.char {
	b, err := lib().encoded(int(device), snapshot.WritePickle)
	if err != nil {
		code(err, text)
		return nil
	}
	*length = C.size_t(len(b))
	return (*C.char)(C.CBytes(b))
}

//export ashlarGoSnapshotJSON
func ashlarGoSnapshotJSON(device C.int, text **C.char) *C.char {
	b, err := lib().encoded(int(device), snapshot.WriteJSON)
	return result(strings.TrimSuffix(string(b), "\n"), err, text)
}

//export ashlarGoFrontCounters
func ashlarGoFrontCounters(device C.int, text **C.char) *C.char {
	s, err := lib().frontJSON(int(device))
	return result(s, err, text)
}

// terms are those of a tenant as C gives them.
func terms(guarantee, ceiling C.uint64_t, priority C.int) tenant.Terms {
	return tenant.Terms{Guarantee: uint64(guarantee), Ceiling: uint64(ceiling), Priority: int(priority)}
}

//export ashlarGoTenantLimit
func ashlarGoTenantLimit(device C.int, bytes C.uint64_t, text **C.char) C.int {
	return code(lib().tenantLimit(int(device), uint64(bytes)), text)
}

//export ashlarGoTenantCreate
func ashlarGoTenantCreate(device C.int, name *C.char, guarantee, ceiling C.uint64_t, priority C.int, text **C.char) C.int {
	return code(lib().createTenant(int(device), C.GoString(name), terms(guarantee, ceiling, priority)), text)
}

//export ashlarGoTenantResize
func ashlarGoTenantResize(device C.int, name *C.char, guarantee, ceiling C.uint64_t, priority C.int, text **C.char) C.int {
	return code(lib().resizeTenant(int(device), C.GoString(name), terms(guarantee, ceiling, priority)), text)
}

//export ashlarGoTenantDelete
func ashlarGoTenantDelete(device C.int, name *C.char, text **C.char) C.int {
	return code(lib().deleteTenant(int(device), C.GoString(name)), text)
}

//export ashlarGoTenantBind
func ashlarGoTenantBind(device C.int, name *C.char, stream C.uint64_t, text **C.char) C.int {
	return code(lib().bindStream(int(device), C.GoString(name), uint64(stream)), text)
}

//export ashlarGoTenantStats
func ashlarGoTenantStats(device C.int, name *C.char, text **C.char) *C.char {
	s, err := lib().tenantStatsJSON(int(device), goText(name))
	return result(s, err, text)
}

//export ashlarGoCollect
func ashlarGoCollect() C.int {
	runtime.GC()
	return codeOK
}
