// How fast the library answers behind PyTorch's pluggable layer.
//
// PyTorch keeps a std::mutex and an unordered_map around each call of a
// pluggable allocator. Layer is a stand-in for it, so that the whole path can
// be measured where there is no PyTorch and no GPU: the library runs on its
// simulated driver (ASHLAR_DRIVER=sim), where memory is nothing but addresses.
//
//   front libashlar.so [milliseconds per case [window|tenants|tiers]]
//
// With "window" only the cases with many live blocks are measured; with "tenants"
// a device with four tenants beside one without, in turns; with "tiers" devices whose
// memory stays where it is, can move, and could overflow.
//
// Each case is measured several times in short samples; the median and the
// best are printed, in nanoseconds per malloc and free over all threads.
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// What PyTorch does around an allocator.
class Layer {
 public:
  using Malloc = std::function<void *(size_t, int, void *)>;
  using Free = std::function<void(void *, size_t, int, void *)>;

  Layer(Malloc malloc, Free free) : malloc_(std::move(malloc)), free_(std::move(free)) {}

  void *allocate(size_t size, void *stream) {
    void *p = malloc_(size, 0, stream);
    const std::lock_guard<std::mutex> lock(mutex_);
    known_.emplace(p, Known{size, 0, stream});
    return p;
  }

  void release(void *p) {
    Known k;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto it = known_.find(p);
      if (it == known_.end()) std::abort();
      k = it->second;
      known_.erase(it);
    }
    free_(p, k.size, k.device, k.stream);
  }

 private:
  struct Known {
    size_t size;
    int device;
    void *stream;
  };
  Malloc malloc_;
  Free free_;
  std::mutex mutex_;
  std::unordered_map<void *, Known> known_;
};

// An allocator that costs nothing: the floor of the layer.
void *nothing_malloc(size_t, int, void *) {
  static std::atomic<uintptr_t> next{0x700000000000};
  thread_local uintptr_t base = next.fetch_add(1u << 30);
  thread_local unsigned i = 0;
  return reinterpret_cast<void *>(base + 512 * (i++ & 1023));
}
void nothing_free(void *, size_t, int, void *) {}

struct Result {
  double median, best;
};

Result of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front()};
}

// The CPU time of all threads, in nanoseconds: what others do on the machine hardly shows in it.
double cpu() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

// The stream of a thread: one of several, or the default one.
void *stream_of(int thread, int streams) {
  return streams == 0 ? nullptr : reinterpret_cast<void *>(static_cast<uintptr_t>(4096) * (thread % streams + 1));
}

// Pairs from several threads at once, in samples of a fixed time.
Result hammer(Layer &layer, int threads, double milliseconds, size_t size, int streams = 0, int rounds = 5, bool cpu_time = false) {
  std::vector<double> samples;
  for (int s = 0; s < rounds; s++) {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false}, stop{false};
    std::atomic<uint64_t> pairs{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
      all.emplace_back([&, stream = stream_of(t, streams)] {
        for (int i = 0; i < 100; i++) layer.release(layer.allocate(size, stream));
        ready++;
        while (!go) sched_yield();
        uint64_t n = 0;
        while (!stop.load(std::memory_order_relaxed)) {
          for (int i = 0; i < 10; i++) layer.release(layer.allocate(size, stream));
          n += 10;
        }
        pairs += n;
      });
    while (ready < threads) sched_yield();
    const auto start = Clock::now();
    const double cpu_start = cpu();
    go = true;
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds / rounds));
    stop = true;
    for (auto &t : all) t.join();
    samples.push_back((cpu_time ? cpu() - cpu_start : since(start)) / static_cast<double>(pairs));
  }
  return of(samples);
}

// Threads that do other work between their calls: what a pair takes then. Turns
// must not be in the way of those who do not hammer.
void spaced(Layer &layer, const char *name, int threads, double work_ns) {
  std::vector<std::vector<double>> samples(threads);
  std::vector<std::thread> all;
  const auto begin = Clock::now();
  for (int t = 0; t < threads; t++)
    all.emplace_back([&, t] {
      for (int i = 0; i < 20000; i++) {
        const auto idle = Clock::now();
        while (since(idle) < work_ns) {
        }
        const auto start = Clock::now();
        layer.release(layer.allocate(4096, nullptr));
        samples[t].push_back(since(start));
      }
    });
  for (auto &t : all) t.join();
  const double each = since(begin) / 20000;  // of a thread's rounds; work_ns if nobody ever waits
  std::vector<double> flat;
  for (const auto &s : samples) flat.insert(flat.end(), s.begin(), s.end());
  std::sort(flat.begin(), flat.end());
  std::printf("%-18s %d threads, a pair each %4.1f us   round %8.1f  p50 %8.0f  p99 %8.0f  max %8.0f ns\n", name, threads, work_ns / 1000,
              each, flat[flat.size() / 2], flat[flat.size() * 99 / 100], flat.back());
}

// A window of live blocks of mixed sizes, one replaced at a time. Sizes are
// spread evenly over the powers of two from 512 bytes to 32 MiB: 64 of them,
// those and what lies between, or any.
enum class Sizes { few, varied, any };

Result window(Layer &layer, double milliseconds, int live, Sizes which) {
  std::mt19937_64 rng(1);
  std::vector<size_t> sizes;
  for (int i = 0; i < 64; i++) sizes.push_back(static_cast<size_t>(512 * std::pow(2.0, 16.0 * static_cast<double>(rng() % 1000) / 1000)));
  std::uniform_real_distribution<double> exponent(9, 25);
  const auto pick = [&] {
    if (which == Sizes::any) return static_cast<size_t>(std::exp2(exponent(rng)));
    const size_t s = sizes[rng() % sizes.size()];
    return which == Sizes::varied ? s + rng() % s : s;
  };
  std::vector<void *> blocks;
  for (int i = 0; i < live; i++) blocks.push_back(layer.allocate(pick(), nullptr));
  std::vector<double> samples;
  for (int s = 0; s < 5; s++) {
    const auto start = Clock::now();
    uint64_t n = 0;
    while (since(start) < milliseconds / 5 * 1e6)
      for (int i = 0; i < 50; i++, n++) {
        void *&b = blocks[rng() % blocks.size()];
        layer.release(b);
        b = layer.allocate(pick(), nullptr);
      }
    samples.push_back(since(start) / static_cast<double>(n));
  }
  for (void *b : blocks) layer.release(b);
  return of(samples);
}

// One call after a millisecond of other work. A hit asks for what was freed
// last, a miss for a size that the front cache does not hold.
void latency(Layer &layer, const char *name, bool hit) {
  std::vector<double> samples;
  size_t size = 8192;
  for (int i = 0; i < 300; i++) {
    layer.release(layer.allocate(size, nullptr));
    if (!hit) size += 512;
    const auto idle = Clock::now();
    while (since(idle) < 1e6) {
    }
    const auto start = Clock::now();
    void *p = layer.allocate(size, nullptr);
    samples.push_back(since(start));
    layer.release(p);
  }
  std::sort(samples.begin(), samples.end());
  std::printf("%-14s one malloc after 1 ms, %-4s  p50 %8.0f  p99 %8.0f  max %8.0f ns\n", name, hit ? "hit" : "miss",
              samples[samples.size() / 2], samples[samples.size() * 99 / 100], samples.back());
}

// Pairs at different paces.
void paces(Layer &layer, const char *name, double ms) {
  for (const size_t size : {size_t{4096}, size_t{1} << 20, size_t{20} << 20}) {
    const Result r = hammer(layer, 1, ms, size);
    std::printf("%-18s 1 thread, %8zu bytes          median %8.1f  best %8.1f ns\n", name, size, r.median, r.best);
  }
  for (const int threads : {2, 4, 8, 16}) {
    const Result r = hammer(layer, threads, ms, 4096);
    std::printf("%-18s %d threads, 4096 bytes            median %8.1f  best %8.1f ns\n", name, threads, r.median, r.best);
  }
  for (const int threads : {2, 8})
    for (const double work : {500.0, 2000.0, 10000.0}) spaced(layer, name, threads, work);
}

// A device with four tenants beside one without, in turns, in CPU time: the ratio of
// the medians is what tenants cost.
int tenants(void *so, double ms) {
  using Create = int (*)(int, const char *, uint64_t, uint64_t, int);
  using Bind = int (*)(int, const char *, void *);
  const auto malloc_fn = reinterpret_cast<void *(*)(size_t, int, void *)>(dlsym(so, "ashlar_malloc"));
  const auto free_fn = reinterpret_cast<void (*)(void *, size_t, int, void *)>(dlsym(so, "ashlar_free"));
  const auto create = reinterpret_cast<Create>(dlsym(so, "ashlar_tenant_create"));
  const auto bind = reinterpret_cast<Bind>(dlsym(so, "ashlar_tenant_bind_stream"));
  const char *names[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; i++)
    if (create(1, names[i], 1u << 30, 0, i) != 0 || bind(1, names[i], stream_of(i, 4)) != 0) return 2;
  const auto on = [&](int device) { return Layer([=](size_t n, int, void *s) { return malloc_fn(n, device, s); }, free_fn); };
  Layer without = on(0), with = on(1);
  const int turns = 41;
  for (const int threads : {1, 8})
    for (const int streams : {0, 4}) {
      std::vector<double> a, b;
      for (int i = 0; i < turns; i++) {
        a.push_back(hammer(without, threads, ms / turns, 4096, streams, 1, true).median);
        b.push_back(hammer(with, threads, ms / turns, 4096, streams, 1, true).median);
      }
      const Result x = of(a), y = of(b);
      std::printf("%d threads, %-22s none: median %7.1f  best %7.1f ns   4 tenants: median %7.1f  best %7.1f ns   %.3f\n", threads,
                  streams == 0 ? "a stream of nobody" : "streams of the tenants", x.median, x.best, y.median, y.best, y.median / x.median);
    }
  return 0;
}

// Devices without tiers, with them, and with overflow and a region that nobody is in, in
// turns, in CPU time.
int tiers(void *so, double ms) {
  using Enter = int (*)(int, const char *, int *);
  using Leave = int (*)(int, int);
  const auto malloc_fn = reinterpret_cast<void *(*)(size_t, int, void *)>(dlsym(so, "ashlar_malloc"));
  const auto free_fn = reinterpret_cast<void (*)(void *, size_t, int, void *)>(dlsym(so, "ashlar_free"));
  const auto configure = reinterpret_cast<int (*)(const char *)>(dlsym(so, "ashlar_configure"));
  const auto enter = reinterpret_cast<Enter>(dlsym(so, "ashlar_region_enter"));
  const auto leave = reinterpret_cast<Leave>(dlsym(so, "ashlar_region_leave"));
  const char *names[] = {"off", "on", "unused"};
  std::vector<Layer *> layers;
  for (int device = 0; device < 3; device++) {
    if (configure(device == 0 ? "tiers:False" : device == 1 ? "tiers:True" : "tiers:True,overflow:1GiB") != 0) return 2;
    layers.push_back(new Layer([=](size_t n, int, void *s) { return malloc_fn(n, device, s); }, free_fn));
    layers.back()->release(layers.back()->allocate(4096, nullptr)); /* the device is made, with the setting */
    int outer = 0;
    if (device == 2 && (enter(device, "unused", &outer) != 0 || leave(device, outer) != 0)) return 2;
  }
  const int turns = 41;
  for (const int threads : {1, 8})
    for (const size_t size : {size_t{4096}, size_t{20} << 20}) {
      std::vector<double> times[3];
      for (int i = 0; i < turns; i++)
        for (int k = 0; k < 3; k++) {
          const int which = i % 2 == 0 ? k : 2 - k;
          times[which].push_back(hammer(*layers[which], threads, ms / turns, size, 0, 1, true).median);
        }
      std::printf("%d threads, %8zu bytes", threads, size);
      for (int k = 0; k < 3; k++) std::printf("   %s: median %7.1f best %7.1f ns %.3f", names[k], of(times[k]).median, of(times[k]).best, of(times[k]).median / of(times[0]).median);
      std::printf("\n");
    }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: front libashlar.so [milliseconds per case [window|tenants|tiers]]\n");
    return 2;
  }
  const bool all = argc <= 3;
  const double ms = argc > 2 ? std::atof(argv[2]) : 300;
  setenv("ASHLAR_DRIVER", "sim", 0);
  void *so = dlopen(argv[1], RTLD_NOW);
  if (so == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  if (argc > 3 && std::string(argv[3]) == "tenants") return tenants(so, ms);
  if (argc > 3 && std::string(argv[3]) == "tiers") return tiers(so, ms);
  const auto malloc_fn = reinterpret_cast<void *(*)(size_t, int, void *)>(dlsym(so, "ashlar_malloc"));
  const auto free_fn = reinterpret_cast<void (*)(void *, size_t, int, void *)>(dlsym(so, "ashlar_free"));
  const auto configure = reinterpret_cast<int (*)(const char *)>(dlsym(so, "ashlar_configure"));
  const auto counters = reinterpret_cast<char *(*)(int)>(dlsym(so, "ashlar_front_counters_json"));

  struct Case {
    const char *name, *conf;
    bool ours;
  };
  for (const Case c : {Case{"nothing", "", false}, Case{"ashlar", "front_cache:True", true},
                       Case{"ashlar, no front", "front_cache:False", true}}) {
    Layer layer = c.ours ? Layer(malloc_fn, free_fn) : Layer(nothing_malloc, nothing_free);
    layer.release(layer.allocate(4096, nullptr));
    if (c.ours && configure(c.conf) != 0) return 2;
    if (all) paces(layer, c.name, ms);
    if (!c.ours) continue;
    for (const Sizes which : {Sizes::few, Sizes::varied, Sizes::any}) {
      const char *names[] = {"64 sizes", "64 sizes and between", "any size"};
      const Result r = window(layer, ms, 512, which);
      std::printf("%-18s 512 live, %-22s median %8.1f  best %8.1f ns\n", c.name, names[static_cast<int>(which)], r.median, r.best);
    }
    if (all) latency(layer, c.name, true);
    if (all) latency(layer, c.name, false);
    std::fflush(stdout);
  }
  const std::string text = counters(0);
  const auto at = text.find("\"hits\"");
  std::printf("%s\n", text.substr(at, text.find(",\"engine\"") - at).c_str());
  return 0;
}
