// pools LIBRARY: the calls of PyTorch's allocator interface with C++ types, and
// the failures of a process without PyTorch.
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "check.h"

struct CUstream_st;

namespace {

using Stream = CUstream_st *;
using PoolId = std::pair<unsigned long long, unsigned long long>;
using Filter = std::function<bool(Stream)>;
using Begin = void (*)(int, PoolId, Filter);
using End = void (*)(int, PoolId);

const Stream kCaptured = reinterpret_cast<Stream>(0x5000);
const Stream kOther = reinterpret_cast<Stream>(0x6000);

struct Library {
  explicit Library(const char *path) : handle(load(path)) {}
  void *handle;
  Malloc request = symbol<Malloc>(handle, "ashlar_malloc");
  Free release = symbol<Free>(handle, "ashlar_free");
  Begin begin = symbol<Begin>(handle, "ashlar_begin_allocate_to_pool");
  End end = symbol<End>(handle, "ashlar_end_allocate_to_pool");
  End release_pool = symbol<End>(handle, "ashlar_release_pool");
};

// A block of the pool is not given to anybody else before the pool is released,
// and the filter lives from begin to end.
void capture(Library &lib) {
  const PoolId id{0, 7};
  int calls = 0;
  auto token = std::make_shared<int>(0);
  lib.begin(0, id, [&calls, token](Stream s) {
    calls++;
    return s == kCaptured;
  });
  CHECK(token.use_count() == 2, "the filter was copied %ld times", token.use_count());
  void *inside = lib.request(5000, 0, kCaptured);
  void *outside = lib.request(5000, 0, kOther);
  CHECK(calls >= 2, "the filter was asked %d times", calls);
  lib.end(0, id);
  CHECK(token.use_count() == 1, "the filter was not destroyed: %ld", token.use_count());

  const int asked = calls;
  lib.release(inside, 5000, 0, kCaptured);
  void *later = lib.request(5000, 0, kCaptured);
  CHECK(calls == asked, "a filter was asked after the end");
  CHECK(later != inside, "memory of the graph was given away");
  lib.release(later, 5000, 0, kCaptured);
  lib.release(outside, 5000, 0, kOther);
  lib.release_pool(0, id);
}

// A filter that throws does not accept, and nothing comes through.
void throwing_filter(Library &lib) {
  const PoolId id{0, 8};
  lib.begin(0, id, [](Stream) -> bool { throw std::logic_error("filter"); });
  void *block = lib.request(5000, 0, kCaptured);
  CHECK(block != nullptr, "no block");
  lib.end(0, id);
  lib.release(block, 5000, 0, kCaptured);
  lib.release_pool(0, id);
}

// A begin that is refused throws and keeps nothing.
void refused(Library &lib) {
  const PoolId id{0, 9};
  auto token = std::make_shared<int>(0);
  lib.begin(0, id, [token](Stream) { return false; });
  auto second = std::make_shared<int>(0);
  try {
    lib.begin(0, id, [second](Stream) { return false; });
    CHECK(false, "the second begin of a pool was taken");
  } catch (const std::runtime_error &) {
  }
  CHECK(second.use_count() == 1, "the refused filter lives");
  CHECK(token.use_count() == 2, "the wrong filter was destroyed");
  lib.end(0, id);
  CHECK(token.use_count() == 1, "the filter was not destroyed");
  lib.release_pool(0, id);
}

void without_pytorch(Library &lib) {
  try {
    lib.request(size_t(1) << 40, 0, nullptr);
    CHECK(false, "nothing thrown");
  } catch (const std::runtime_error &e) {
    CHECK(std::strncmp(e.what(), "CUDA out of memory.", 19) == 0, "%s", e.what());
  }
  try {
    lib.request(1000, -3, nullptr);
    CHECK(false, "nothing thrown");
  } catch (const std::runtime_error &e) {
    CHECK(std::strstr(e.what(), "-3") != nullptr, "%s", e.what());
  }
}

// What PyTorch calls in destructors never throws, whatever it is given.
void never_throws(Library &lib) {
  lib.release(nullptr, 0, 0, nullptr);
  lib.release(reinterpret_cast<void *>(0x1000), 512, 0, nullptr);
  lib.end(0, PoolId{0, 99});
  lib.release_pool(0, PoolId{0, 99});
  auto record = symbol<void (*)(void *, void *)>(lib.handle, "ashlar_record_stream");
  record(nullptr, nullptr);
  record(reinterpret_cast<void *>(0x1000), nullptr);
}

void base(Library &lib) {
  auto base_of = symbol<void *(*)(void *, size_t *)>(lib.handle, "ashlar_base_alloc");
  void *first = lib.request(4096, 0, nullptr);
  void *second = lib.request(4096, 0, nullptr);
  size_t size = 0;
  void *start = base_of(second, &size);
  const char *from = static_cast<char *>(start);
  CHECK(start == base_of(first, nullptr), "two blocks of a segment with different bases");
  CHECK(size >= 8192 && from + size >= static_cast<char *>(second) + 4096, "%zu bytes", size);
  lib.release(first, 4096, 0, nullptr);
  lib.release(second, 4096, 0, nullptr);
}

// A witness is told of calls, after an allocation and before a free, until it
// is taken away.
std::string told;

void witness(int action, int device, void *block, size_t size) {
  char line[64];
  std::snprintf(line, sizeof line, "%d:%d:%s:%zu ", action, device, block != nullptr ? "block" : "null", size);
  told += line;
}

void witnessed(Library &lib) {
  auto set = symbol<void (*)(void (*)(int, int, void *, size_t))>(lib.handle, "ashlar_set_witness");
  set(witness);
  void *block = lib.request(700, 0, nullptr);
  lib.request(0, 0, nullptr);
  try {
    lib.request(size_t(1) << 40, 0, nullptr);
  } catch (const std::runtime_error &) {
  }
  lib.release(block, 700, 0, nullptr);
  set(nullptr);
  lib.release(lib.request(800, 0, nullptr), 800, 0, nullptr);
  CHECK(told == "0:0:block:700 2:0:null:1099511627776 1:0:block:700 ", "%s", told.c_str());
}

}  // namespace

int main(int, char **argv) {
  Library lib(argv[1]);
  CHECK(lib.request(0, 0, nullptr) == nullptr, "a block of no bytes");
  capture(lib);
  throwing_filter(lib);
  refused(lib);
  without_pytorch(lib);
  base(lib);
  witnessed(lib);
  never_throws(lib);
  std::puts("ok");
}
