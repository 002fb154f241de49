// Times the allocator that torch has installed in this process, from C++ through
// torch's own allocator interface, without Python in the loop. Loaded by ctypes.
// Every function returns 0, or -1 with the reason in pair_error().
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
std::string error_text;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

void* get(size_t bytes) {
  return c10::cuda::CUDACachingAllocator::get()->raw_alloc_with_stream(bytes, nullptr);
}

void give(void* p) { c10::cuda::CUDACachingAllocator::get()->raw_delete(p); }

// A negative number leaves the thread where it is.
void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Keeps one thread on one CPU for the time of a call.
class Pinned {
 public:
  explicit Pinned(int cpu) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    pin(cpu);
  }
  ~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

struct Random {  // xorshift64*
  uint64_t x = 0x9E3779B97F4A7C15ull;
  uint64_t next() {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 0x2545F4914F6CDD1Dull;
  }
};

template <class F>
int guarded(F body) {
  try {
    c10::cuda::set_device(0);
    body();
    return 0;
  } catch (const std::exception& e) {
    error_text = e.what();
  } catch (...) {
    error_text = "an exception of unknown type";
  }
  return -1;
}

}  // namespace

extern "C" {

const char* pair_error() { return error_text.c_str(); }

// out[s]: nanoseconds of one malloc and free, the mean over a sample of n pairs.
int pair_single(size_t bytes, long n, int samples, int cpu, double* out) {
  return guarded([=] {
    Pinned here(cpu);
    for (long i = 0; i < n; i++) give(get(bytes));
    for (int s = 0; s < samples; s++) {
      const auto begin = Clock::now();
      for (long i = 0; i < n; i++) give(get(bytes));
      out[s] = ns_since(begin) / static_cast<double>(n);
    }
  });
}

// Random ones of `live` blocks are replaced by blocks of 2^low to 2^high bytes.
int pair_window(int live, int low, int high, long n, int samples, int cpu, double* out) {
  return guarded([=] {
    Pinned here(cpu);
    Random random;
    std::vector<size_t> sizes(65536);
    for (size_t& size : sizes) {
      const double u = static_cast<double>(random.next() >> 11) * 0x1.0p-53;
      size = static_cast<size_t>(std::pow(2.0, low + (high - low) * u));
    }
    std::vector<void*> slots(static_cast<size_t>(live));
    for (size_t i = 0; i < slots.size(); i++) slots[i] = get(sizes[i]);
    const auto walk = [&] {
      for (long i = 0; i < n; i++) {
        const uint64_t r = random.next();
        void*& slot = slots[(r >> 16) % slots.size()];
        give(slot);
        slot = get(sizes[r & 65535]);
      }
    };
    for (int warm = 0; warm < 10; warm++) walk();
    for (int s = 0; s < samples; s++) {
      const auto begin = Clock::now();
      walk();
      out[s] = ns_since(begin) / static_cast<double>(n);
    }
    for (void* p : slots) give(p);
  });
}

// out[s]: wall time over all pairs of all threads; thread t runs on cpus[t]. A thread that uses
// the GPU has its context; one that never did pays about a microsecond for each
// question which device is current, and those questions wait for each other
// under any allocator: bound says which kind these threads are.
int pair_threads(size_t bytes, int threads, long each, int samples, const int* cpus, int bound, double* out) {
  return guarded([=] {
    std::atomic<bool> failed{false};
    for (int s = 0; s < samples; s++) {
      std::atomic<int> ready{0};
      std::atomic<bool> go{false};
      std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
      std::vector<std::thread> team;
      for (int t = 0; t < threads; t++)
        team.emplace_back([&, t] {
          try {
            pin(cpus[t]);
            c10::cuda::set_device(0);
            if (bound && cudaFree(nullptr) != cudaSuccess) throw std::runtime_error("cudaFree(0) failed");
            for (int i = 0; i < 200; i++) give(get(bytes));
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire)) {
            }
            for (long i = 0; i < each; i++) give(get(bytes));
          } catch (...) {
            failed.store(true);
            ready.fetch_add(1);
          }
          ends[static_cast<size_t>(t)] = Clock::now();
        });
      while (ready.load() < threads) std::this_thread::yield();
      const auto begin = Clock::now();
      go.store(true, std::memory_order_release);
      for (std::thread& th : team) th.join();
      if (failed) throw std::runtime_error("a thread's allocation failed");
      const auto end = *std::max_element(ends.begin(), ends.end());
      out[s] = std::chrono::duration<double, std::nano>(end - begin).count() /
               static_cast<double>(each * threads);
    }
  });
}

// One malloc and its free, each after gap_us of work in C. Call i asks for bytes + i * step:
// with step 0 the same size comes again, otherwise no size comes twice.
int pair_latency(size_t bytes, size_t step, double gap_us, int calls, int cpu,
                 double* malloc_ns, double* free_ns) {
  return guarded([=] {
    Pinned here(cpu);
    const auto work = [=] {
      const auto begin = Clock::now();
      while (ns_since(begin) < gap_us * 1000) {
      }
    };
    for (int i = 0; i < 3; i++) give(get(bytes));
    for (int i = 0; i < calls; i++) {
      const size_t size = bytes + static_cast<size_t>(i) * step;
      work();
      auto begin = Clock::now();
      void* p = get(size);
      malloc_ns[i] = ns_since(begin);
      work();
      begin = Clock::now();
      give(p);
      free_ns[i] = ns_since(begin);
    }
  });
}

// The calls of a real run, in order: call i allocates sizes[i] bytes, or frees what call of[i]
// allocated if sizes[i] is 0. dirty_kb of memory are touched before each call, so that it finds the
// caches as it does between the operators of a model. The pass is made twice; total_ns[0] and
// [1] are what the mallocs and the frees of the second took in all.
int pair_trace(const uint64_t* sizes, const int* of, int calls, int dirty_kb, int cpu, double* total_ns) {
  return guarded([=] {
    Pinned here(cpu);
    std::vector<char> other(static_cast<size_t>(dirty_kb) * 1024 + 64);
    std::vector<void*> got(static_cast<size_t>(calls));
    double overhead = 1e9;  // of reading the clock twice
    for (int i = 0; i < 1000; i++) {
      const auto begin = Clock::now();
      overhead = std::min(overhead, ns_since(begin));
    }
    for (int pass = 0; pass < 2; pass++) {
      total_ns[0] = total_ns[1] = 0;
      for (int i = 0; i < calls; i++) {
        for (size_t b = 0; b < other.size(); b += 64) other[b]++;
        const auto k = static_cast<size_t>(i);
        if (sizes[k] != 0) {
          const auto begin = Clock::now();
          got[k] = get(sizes[k]);
          total_ns[0] += ns_since(begin) - overhead;
        } else {
          void*& p = got[static_cast<size_t>(of[k])];
          const auto begin = Clock::now();
          give(p);
          total_ns[1] += ns_since(begin) - overhead;
          p = nullptr;
        }
      }
      for (void*& p : got) {
        if (p != nullptr) give(p);
        p = nullptr;
      }
    }
  });
}

}  // extern "C"
