// Times PyTorch's CUDA caching allocator from C++, without Python in the loop.
// One JSON line per case on stdout; everything else goes to stderr.
//
// The normal build uses torch's public headers. -DTORCH_ALLOC_NO_HEADERS builds
// the fallback for a machine whose headers are unusable (see below).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifndef TORCH_ALLOC_NO_HEADERS

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace dev {
namespace cca = c10::cuda::CUDACachingAllocator;

inline void use_device() { c10::cuda::set_device(0); }
inline void* alloc(size_t n) { return cca::raw_alloc_with_stream(n, nullptr); }
inline void release(void* p) { cca::raw_delete(p); }
inline void empty_cache() { cca::emptyCache(); }
// Driver allocations made so far; lets a reader see that a timed loop made none.
inline long long driver_allocs() {
  return static_cast<long long>(cca::getDeviceStats(0).num_device_alloc);
}
inline void start() {
  const int count = static_cast<int>(c10::cuda::device_count());
  if (count < 1) throw std::runtime_error("no CUDA device is visible");
  use_device();
  cca::init(count);
  std::fprintf(stderr, "torch_alloc: headers build, backend %s, %d device(s)\n",
               cca::name().c_str(), count);
}
}  // namespace dev

#else  // TORCH_ALLOC_NO_HEADERS

// Fallback. The library exports the allocator object and a few plain functions;
// the allocator's own methods are virtual and reached by their place in its
// virtual table. Those places are the ones of PyTorch 2.11 (Itanium C++ ABI,
// run.sh refuses other versions) and start() checks that they behave.
#include <dlfcn.h>

namespace dev {
enum Slot {
  kEmptyCache = 7,
  kRawAllocWithStream = 14,
  kRawDelete = 15,
  kInit = 16,
};
struct PoolId {
  unsigned long long first, second;
};
inline void* object;
inline void (*fn_set_device)(signed char, bool);
inline void (*fn_empty)(void*, PoolId);
inline void* (*fn_alloc)(void*, size_t, void*);
inline void (*fn_release)(void*, void*);

inline void* symbol(const char* name) {
  void* p = dlsym(RTLD_DEFAULT, name);
  if (!p) throw std::runtime_error(std::string("symbol not found: ") + name);
  return p;
}
template <class F>
inline F method(int slot) {
  return reinterpret_cast<F>((*static_cast<void***>(object))[slot]);
}

inline void use_device() { fn_set_device(0, false); }
inline void* alloc(size_t n) { return fn_alloc(object, n, nullptr); }
inline void release(void* p) { fn_release(object, p); }
inline void empty_cache() { fn_empty(object, PoolId{0, 0}); }
inline long long driver_allocs() { return -1; }  // not known in this build
inline void start() {
  for (const char* lib : {"libc10.so", "libc10_cuda.so"})
    if (!dlopen(lib, RTLD_NOW | RTLD_GLOBAL))
      throw std::runtime_error(std::string("dlopen: ") + dlerror());
  const auto device_count = reinterpret_cast<signed char (*)()>(
      symbol("_ZN3c104cuda12device_countEv"));
  fn_set_device = reinterpret_cast<void (*)(signed char, bool)>(
      symbol("_ZN3c104cuda10set_deviceEab"));
  object = static_cast<std::atomic<void*>*>(
               symbol("_ZN3c104cuda20CUDACachingAllocator9allocatorE"))->load();
  if (!object) throw std::runtime_error("torch has no CUDA allocator");
  fn_empty = method<void (*)(void*, PoolId)>(kEmptyCache);
  fn_alloc = method<void* (*)(void*, size_t, void*)>(kRawAllocWithStream);
  fn_release = method<void (*)(void*, void*)>(kRawDelete);
  const int count = device_count();
  if (count < 1) throw std::runtime_error("no CUDA device is visible");
  use_device();
  method<void (*)(void*, int)>(kInit)(object, count);
  // Two neighbours of 4096 bytes, and the first address again after freeing both.
  char* a = static_cast<char*>(alloc(4096));
  char* b = static_cast<char*>(alloc(4096));
  release(a);
  release(b);
  char* c = static_cast<char*>(alloc(4096));
  release(c);
  if (!a || b - a != 4096 || c != a)
    throw std::runtime_error("the fallback's virtual table places do not fit this torch");
  std::fprintf(stderr, "torch_alloc: fallback build without headers, %d device(s)\n", count);
}
}  // namespace dev

#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 5;
constexpr size_t kBlock = 4096;

double ns_between(Clock::time_point a, Clock::time_point b) {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(b - a).count());
}

void* must_alloc(size_t n) {
  void* p = dev::alloc(n);
  if (!p) throw std::runtime_error("allocator returned null");
  return p;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t m = v.size() / 2;
  return v.size() % 2 ? v[m] : (v[m - 1] + v[m]) / 2;
}

double minimum(const std::vector<double>& v) {
  return *std::min_element(v.begin(), v.end());
}

// per_op: one figure per run. extra: further JSON members, each led by a comma.
void report(const char* name, const std::vector<double>& per_op, long long n,
            bool best, long long driver_allocs, const std::string& extra = "") {
  const double med = median(per_op), low = minimum(per_op);
  std::printf("{\"who\":\"torch\",\"case\":\"%s\",\"ns\":%.2f,\"n\":%lld,"
              "\"median\":%.2f,\"min\":%.2f,\"runs\":%zu,\"driver_allocs\":%lld%s}\n",
              name, best ? low : med, n, med, low, per_op.size(), driver_allocs,
              extra.c_str());
  std::fflush(stdout);
}

// Driver allocations since an earlier reading; -1 where they cannot be read.
long long allocs_since(long long before) {
  return before < 0 ? -1 : dev::driver_allocs() - before;
}

void pairs(long long n) {
  for (long long i = 0; i < n; i++) dev::release(dev::alloc(kBlock));
}

void hot_pair() {
  const long long n = 2000000;
  dev::empty_cache();
  pairs(100000);
  const long long before = dev::driver_allocs();
  std::vector<double> runs;
  for (int r = 0; r < kRuns; r++) {
    const auto t0 = Clock::now();
    pairs(n);
    runs.push_back(ns_between(t0, Clock::now()) / static_cast<double>(n));
  }
  report("hot_pair", runs, n, false, allocs_since(before));
}

// xorshift64*; the Go benchmarks draw the same numbers.
struct Random {
  uint64_t x = 0x9E3779B97F4A7C15ull;
  uint64_t next() {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 0x2545F4914F6CDD1Dull;
  }
};

// Replaces random blocks among many live ones: sizes are drawn from a table of
// 65,536, slots without one, so that the sequence does not repeat.
void window(const char* name, uint32_t live, int exp_lo, int exp_hi) {
  const long long n = 1000000, warm = 200000;
  Random rnd;
  std::vector<uint64_t> sizes(65536);
  for (uint64_t& s : sizes) {
    const double u = static_cast<double>(rnd.next() >> 11) * 0x1.0p-53;
    s = static_cast<uint64_t>(std::pow(2.0, exp_lo + (exp_hi - exp_lo) * u));
  }
  dev::empty_cache();
  std::vector<void*> slots(live);
  for (size_t i = 0; i < live; i++) slots[i] = must_alloc(sizes[i & 65535]);
  const auto walk = [&](long long count) {
    for (long long i = 0; i < count; i++) {
      const uint64_t r = rnd.next();
      void*& slot = slots[(r >> 16) % live];
      dev::release(slot);
      slot = dev::alloc(sizes[r & 65535]);
    }
  };
  walk(warm);
  const long long before = dev::driver_allocs();
  std::vector<double> runs;
  for (int r = 0; r < kRuns; r++) {
    const auto t0 = Clock::now();
    walk(n);
    runs.push_back(ns_between(t0, Clock::now()) / static_cast<double>(n));
  }
  report(name, runs, n, false, allocs_since(before),
         ",\"live\":" + std::to_string(live) + ",\"exponents\":[" +
             std::to_string(exp_lo) + "," + std::to_string(exp_hi) + "]");
  for (void* p : slots) dev::release(p);
  dev::empty_cache();
}

// 100,000 equal blocks with every second one freed; then random live blocks
// are freed and allocated again.
void equal_holes() {
  const size_t blocks = 100000;
  const long long n = 500000;
  Random rnd;
  std::vector<void*> p(blocks);
  dev::empty_cache();
  for (void*& q : p) q = must_alloc(kBlock);
  for (size_t i = 1; i < blocks; i += 2) dev::release(p[i]);
  const auto walk = [&](long long count) {
    for (long long i = 0; i < count; i++) {
      void*& slot = p[(rnd.next() >> 16) % (blocks / 2) * 2];
      dev::release(slot);
      slot = dev::alloc(kBlock);
    }
  };
  walk(100000);
  const long long before = dev::driver_allocs();
  std::vector<double> runs;
  for (int r = 0; r < kRuns; r++) {
    const auto t0 = Clock::now();
    walk(n);
    runs.push_back(ns_between(t0, Clock::now()) / static_cast<double>(2 * n));
  }
  report("equal_holes", runs, 2 * n, false, allocs_since(before));
  for (size_t i = 0; i < blocks; i += 2) dev::release(p[i]);
  dev::empty_cache();
}

void equal_100k() {
  const size_t blocks = 100000;
  const long long ops = 300000;  // 100k malloc, 50k free, 50k malloc, 100k free
  std::vector<void*> p(blocks);
  dev::empty_cache();
  const auto pass = [&] {
    for (void*& q : p) q = dev::alloc(kBlock);
    for (size_t i = 1; i < blocks; i += 2) dev::release(p[i]);
    for (size_t i = 1; i < blocks; i += 2) p[i] = dev::alloc(kBlock);
    for (void* q : p) dev::release(q);
  };
  pass();  // warm-up: gets the segments from the driver
  const long long before = dev::driver_allocs();
  std::vector<double> runs;
  for (int r = 0; r < kRuns; r++) {
    const auto t0 = Clock::now();
    pass();
    runs.push_back(ns_between(t0, Clock::now()) / static_cast<double>(ops));
  }
  report("equal_100k", runs, ops, true, allocs_since(before));
  dev::empty_cache();
}

// Contention is slow: past budget_s the case stops repeating, after 3 runs at least.
void threads_case(const char* name, int threads, double budget_s) {
  const long long each = 200000;
  dev::empty_cache();
  pairs(1000);
  const long long before = dev::driver_allocs();
  std::vector<double> all, per_thread;
  const auto begin = Clock::now();
  for (int r = 0; r < kRuns; r++) {
    if (r >= 3 && ns_between(begin, Clock::now()) > budget_s * 1e9) break;
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
      pool.emplace_back([&, t] {
        dev::use_device();
        pairs(1000);
        ready.fetch_add(1);
        while (!go.load(std::memory_order_acquire)) {
        }
        pairs(each);
        ends[static_cast<size_t>(t)] = Clock::now();
      });
    while (ready.load() < threads) std::this_thread::yield();
    const auto t0 = Clock::now();
    go.store(true, std::memory_order_release);
    for (std::thread& th : pool) th.join();
    const double wall = ns_between(t0, *std::max_element(ends.begin(), ends.end()));
    all.push_back(wall / static_cast<double>(each * threads));
    per_thread.push_back(wall / static_cast<double>(each));
  }
  char extra[64];
  std::snprintf(extra, sizeof extra, ",\"ns_per_thread\":%.2f", median(per_thread));
  report(name, all, each * threads, false, allocs_since(before), extra);
}

}  // namespace

int main() {
  try {
    dev::start();
    hot_pair();
    window("window_512", 512, 9, 25);
    // 2^uniform(9,25) times 65,536 blocks would be about 190 GB; this is about 9 GB.
    window("window_65536", 65536, 9, 20);
    equal_100k();
    equal_holes();
    threads_case("threads_2", 2, 10.0);
    threads_case("threads_8", 8, 15.0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "torch_alloc: FAILED: %s\n", e.what());
    return 1;
  }
  return 0;
}
