// cacheinfo LIBRARY TORCH_CUDA WHY: what ashlar_complete_torch() does to a
// library like PyTorch's. WHY is empty if cacheInfo() must be served, else the
// reason that must be given. The refusals of the system come from this program:
// WHY "mprotect" has it refuse.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../ashlar.h"
#include "check.h"
#include "torch_cuda.h"

namespace {

using Allocator = c10::cuda::CUDACachingAllocator::CUDAAllocator;
constexpr size_t MiB = size_t(1) << 20;

struct Call {
  void *at;
  size_t size;
  int bits;
};
std::vector<Call> calls;  // of mprotect, while watching
bool watching = false, refusing = false;

// As /proc/self/maps has it, such as "r--p".
std::string protection(const void *address) {
  std::FILE *maps = std::fopen("/proc/self/maps", "r");
  CHECK(maps != nullptr, "no maps");
  char line[8192], bits[8] = "";
  unsigned long from, to, at = reinterpret_cast<unsigned long>(address);
  std::string found;
  while (std::fgets(line, sizeof line, maps) != nullptr)
    if (std::sscanf(line, "%lx-%lx %7s", &from, &to, bits) == 3 && from <= at && at < to) found = bits;
  std::fclose(maps);
  return found;
}

bool throws(Allocator *allocator) {
  unsigned long largest = 5;
  try {
    allocator->cacheInfo(0, &largest);
  } catch (const std::runtime_error &e) {
    CHECK(std::strstr(e.what(), "cacheInfo") != nullptr, "%s", e.what());
    CHECK(largest == 5, "%lu", largest);
    return true;
  }
  return false;
}

size_t ask(Allocator *allocator, signed char device, size_t guess) {
  allocator->cacheInfo(device, &guess);
  return guess;
}

void answers(void *library, Allocator *allocator) {
  auto request = symbol<Malloc>(library, "ashlar_malloc");
  auto release = symbol<Free>(library, "ashlar_free");
  auto empty = symbol<decltype(&ashlar_reset)>(library, "ashlar_reset");
  auto begin = symbol<decltype(&ashlar_front_begin_pool)>(library, "ashlar_front_begin_pool");
  auto end = symbol<decltype(&ashlar_front_end_pool)>(library, "ashlar_front_end_pool");
  const auto expect = [&](size_t guess, size_t want) {
    const size_t got = ask(allocator, 0, guess);
    CHECK(got == want, "guess %zu: %zu, not %zu", guess, got, want);
  };
  expect(0, 256 * MiB);  // all that the device has
  expect(7, 7);
  void *block = request(40 * MiB, 0, nullptr);
  expect(1, 1);
  expect(0, 216 * MiB);
  release(block, 40 * MiB, 0, nullptr);
  expect(1, 40 * MiB);  // though the front may hold it
  expect(100 * MiB, 100 * MiB);
  block = request(200 * MiB, 0, nullptr);
  expect(0, 56 * MiB);
  release(block, 200 * MiB, 0, nullptr);
  expect(0, 200 * MiB);  // more than the device has free

  // Pools of graphs count, as in PyTorch.
  CHECK(empty() == ASHLAR_OK, "reset");
  expect(1, 1);
  CHECK(begin(0, 0, 9, [](void *, void *) { return true; }, nullptr) == ASHLAR_OK, "begin");
  block = request(60 * MiB, 0, nullptr);
  CHECK(end(0, 0, 9) == ASHLAR_OK, "end");
  expect(1, 1);
  release(block, 60 * MiB, 0, nullptr);
  expect(1, 60 * MiB);

  // Where there is no answer the guess stays.
  CHECK(ask(allocator, -1, 3) == 3, "device -1");
  CHECK(ask(allocator, 100, 0) == 0, "device 100");
  const pid_t child = fork();
  if (child == 0) _exit(ask(allocator, 0, 11) == 11 ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "in a fork: %d", status);
}

}  // namespace

// In the place of the C library's.
extern "C" int mprotect(void *at, size_t size, int bits) noexcept {
  if (watching) calls.push_back({at, size, bits});
  if (watching && refusing) return -1;
  return static_cast<int>(syscall(SYS_mprotect, at, size, bits));
}

int main(int, char **argv) {
  const std::string why = argv[3];
  refusing = why == "mprotect";
  void *library = load(argv[1]);
  auto complete = symbol<decltype(&ashlar_complete_torch)>(library, "ashlar_complete_torch");
  auto text = symbol<decltype(&ashlar_error_text)>(library, "ashlar_error_text");
  CHECK(complete() == 0, "without PyTorch");
  CHECK(why == "ASHLAR_PATCH_TORCH=0" || std::strcmp(text(), "libtorch_cuda.so is not loaded") == 0, "%s", text());

  void *torch = load(argv[2]);
  Allocator *allocator = symbol<decltype(&standin_allocator)>(torch, "standin_allocator")();
  const void *table = *reinterpret_cast<void **>(allocator);
  const std::string before = protection(table);
  CHECK(throws(allocator), "before");

  for (int i = 0; i < 2; i++) {
    watching = true;
    const int served = complete();
    watching = false;
    CHECK(served == (why.empty() ? 1 : 0), "%s", text());
    if (!why.empty()) CHECK(std::strstr(text(), refusing ? "cannot be made writable" : why.c_str()) != nullptr, "%s", text());
  }
  if (why.empty() && before == "r--p") {
    // One page was opened and closed, once.
    CHECK(calls.size() == 2, "%zu calls", calls.size());
    CHECK(calls[0].bits == (PROT_READ | PROT_WRITE) && calls[1].bits == PROT_READ, "%d, %d", calls[0].bits, calls[1].bits);
    CHECK(calls[0].at == calls[1].at && calls[0].size == calls[1].size, "%p, %p", calls[0].at, calls[1].at);
    CHECK(calls[0].size == static_cast<size_t>(sysconf(_SC_PAGESIZE)), "%zu", calls[0].size);
    CHECK(protection(calls[0].at) == "r--p", "%s", protection(calls[0].at).c_str());
  } else {
    CHECK(calls.size() == (refusing ? 2 : 0), "%zu calls", calls.size());
  }
  CHECK(protection(table) == before, "%s", protection(table).c_str());

  CHECK(throws(allocator) == !why.empty(), "afterwards");
  CHECK(allocator->isEnabled(), "another method");
  unsigned long size = 0;
  CHECK(allocator->getBaseAllocation(&size, &size) == &size && size == 0, "another method");
  if (why.empty()) answers(library, allocator);
  std::printf("ok\n");
  std::fprintf(stderr, "%s", before.c_str());
}
