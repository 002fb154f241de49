"""What the calls cost with which PyTorch's allocator gets and gives memory.

usage: python costs.py [--pauses]        (a machine with a GPU and its driver; no PyTorch)

Prints two tables of medians in microseconds: cuMemAlloc and cuMemFree by size,
and for expandable segments what it takes to put memory behind a range (create
and map each handle, set access over the range once) and to take it away (unmap
and release each handle), by the size of the handle and their number. With
--pauses, instead: how much longer the first call takes after a pause, by its
length and by what the time was spent on: sleeping, a loop on the CPU, or copies on
the device.
"""
import ctypes as C
import statistics
import sys
import time

cuda = C.CDLL("libcuda.so.1")
MIB = 1 << 20


def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result != 0:
        raise RuntimeError(f"{name} failed with error {result}")


def timed(f):
    begin = time.perf_counter_ns()
    f()
    return (time.perf_counter_ns() - begin) / 1000


class Location(C.Structure):
    _fields_ = [("type", C.c_int), ("id", C.c_int)]


class Prop(C.Structure):
    _fields_ = [("type", C.c_int), ("handles", C.c_int), ("location", Location), ("meta", C.c_void_p),
                ("compression", C.c_ubyte), ("rdma", C.c_ubyte), ("usage", C.c_ushort), ("reserved", C.c_ubyte * 4)]


class Access(C.Structure):
    _fields_ = [("location", Location), ("flags", C.c_int)]


def pauses():
    scratch = C.c_uint64()
    call("cuMemAlloc_v2", C.byref(scratch), C.c_size_t(64 * MIB))

    def asleep(us):
        time.sleep(us / 1e6)

    def busy(us):
        end = time.perf_counter_ns() + us * 1000
        while time.perf_counter_ns() < end:
            pass

    def copies(us):
        end = time.perf_counter_ns() + us * 1000
        while time.perf_counter_ns() < end:
            call("cuMemsetD8_v2", scratch, C.c_ubyte(0), C.c_size_t(64 * MIB))
            call("cuCtxSynchronize")

    names = ("cuMemAlloc", "cuMemFree", "cuMemFree at once")
    print("| pause | of | " + " | ".join("%s %d MiB us" % (n, s) for s in (2, 20, 64) for n in names) + " |")
    print("|---|---|" + "---|" * 9)
    for us in (0, 30, 100, 300, 1000, 3000, 10000, 30000):
        for wait in (asleep, busy, copies) if us else (busy,):
            columns = []
            for size in (2, 20, 64):
                gets, gives, soon = [], [], []
                for _ in range(3 + (12 if us < 10000 else 6)):
                    p, q = C.c_uint64(), C.c_uint64()
                    wait(us)
                    gets.append(timed(lambda: call("cuMemAlloc_v2", C.byref(p), C.c_size_t(size * MIB))))
                    call("cuMemAlloc_v2", C.byref(q), C.c_size_t(size * MIB))
                    wait(us)
                    gives.append(timed(lambda: call("cuMemFree_v2", p)))
                    soon.append(timed(lambda: call("cuMemFree_v2", q)))
                columns += [statistics.median(x[3:]) for x in (gets, gives, soon)]
            print(f"| {us / 1000:g} ms | {wait.__name__} | " + " | ".join("%.0f" % c for c in columns) + " |")


def main():
    call("cuInit", 0)
    device, context = C.c_int(), C.c_void_p()
    call("cuDeviceGet", C.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", C.byref(context), device)
    call("cuCtxSetCurrent", context)
    name = C.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    print(name.value.decode())
    if sys.argv[1:] == ["--pauses"]:
        return pauses()

    print("| size MiB | cuMemAlloc us | cuMemFree us |\n|---|---|---|")
    for size in (2, 10, 20, 64, 200, 512, 1024, 2048, 8192):
        gets, gives = [], []
        for _ in range(40 if size <= 512 else 12):
            p = C.c_uint64()
            gets.append(timed(lambda: call("cuMemAlloc_v2", C.byref(p), C.c_size_t(size * MIB))))
            gives.append(timed(lambda: call("cuMemFree_v2", p)))
        # The first calls of a size warm something up.
        print(f"| {size} | {statistics.median(gets[3:]):.1f} | {statistics.median(gives[3:]):.1f} |")

    prop = Prop(type=1, location=Location(1, 0))
    access = Access(Location(1, 0), 3)
    print("| handle MiB | handles | create, map, set access us | per handle | unmap, release us | per handle |\n|---|---|---|---|---|---|")
    for granule in (2, 12, 20, 32, 64, 128, 256):
        for n in (1, 4, 16, 50):
            size = granule * MIB
            base = C.c_uint64()
            call("cuMemAddressReserve", C.byref(base), C.c_size_t(n * size), C.c_size_t(0), C.c_uint64(0), C.c_ulonglong(0))
            maps, unmaps = [], []
            for _ in range(12):
                handles = [C.c_uint64() for _ in range(n)]

                def put():
                    for i, h in enumerate(handles):
                        call("cuMemCreate", C.byref(h), C.c_size_t(size), C.byref(prop), C.c_ulonglong(0))
                        call("cuMemMap", C.c_uint64(base.value + i * size), C.c_size_t(size), C.c_size_t(0), h, C.c_ulonglong(0))
                    call("cuMemSetAccess", base, C.c_size_t(n * size), C.byref(access), C.c_size_t(1))

                def take():
                    for i, h in enumerate(handles):
                        call("cuMemUnmap", C.c_uint64(base.value + i * size), C.c_size_t(size))
                        call("cuMemRelease", h)

                maps.append(timed(put))
                unmaps.append(timed(take))
            call("cuMemAddressFree", base, C.c_size_t(n * size))
            put_us, take_us = statistics.median(maps[2:]), statistics.median(unmaps[2:])
            print(f"| {granule} | {n} | {put_us:.0f} | {put_us / n:.1f} | {take_us:.0f} | {take_us / n:.1f} |")


if __name__ == "__main__":
    main()
