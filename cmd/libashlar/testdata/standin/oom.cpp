// oom LIBRARY C10_CUDA: requests too much and expects c10::OutOfMemoryError, of
// that type, 300 times, without a leak.
#include <malloc.h>

#include <cstring>
#include <stdexcept>
#include <typeinfo>

#include "c10.h"
#include "check.h"

namespace {

constexpr size_t kTooMuch = size_t(1) << 40;

// Returns whether the request failed as PyTorch's own allocator fails.
bool fails(Malloc request) {
  try {
    request(kTooMuch, 0, nullptr);
  } catch (const c10::OutOfMemoryError &e) {
    CHECK(typeid(e) == typeid(c10::OutOfMemoryError), "%s", typeid(e).name());
    const char *text = e.what_without_backtrace();
    CHECK(std::strncmp(text, "CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 ", 57) == 0, "%s", text);
    CHECK(std::strstr(e.what(), "ashlar_malloc in libashlar") != nullptr, "%s", e.what());
    return true;
  }
  return false;
}

// What catches by a base class must see it too.
void as_error(Malloc request) {
  try {
    request(kTooMuch, 0, nullptr);
  } catch (const c10::Error &) {
    return;
  }
  CHECK(false, "not caught as c10::Error");
}

void as_exception(Malloc request) {
  std::exception_ptr kept;
  try {
    request(kTooMuch, 0, nullptr);
  } catch (const std::exception &) {
    kept = std::current_exception();
  }
  CHECK(kept != nullptr, "not caught as std::exception");
  // PyTorch carries exceptions between threads like this.
  try {
    std::rethrow_exception(kept);
  } catch (const c10::OutOfMemoryError &) {
    return;
  }
  CHECK(false, "not caught when thrown again");
}

}  // namespace

int main(int, char **argv) {
  void *library = load(argv[1]);
  auto request = symbol<Malloc>(library, "ashlar_malloc");
  auto release = symbol<Free>(library, "ashlar_free");

  // A class that cannot be found yet must not be given up.
  try {
    request(kTooMuch, 0, nullptr);
    CHECK(false, "nothing thrown");
  } catch (const std::runtime_error &e) {
    CHECK(std::strncmp(e.what(), "CUDA out of memory.", 19) == 0, "%s", e.what());
  }
  load(argv[2]);

  size_t before = 0;
  for (int i = 0; i < 310; i++) {
    if (i == 10) before = mallinfo2().uordblks;  // caches are warm
    CHECK(fails(request), "request %d", i);
  }
  const size_t after = mallinfo2().uordblks;
  // Go may start a thread meanwhile, which takes some 3 KiB of the heap.
  CHECK(after < before + 16384, "300 errors left %zu bytes", after - before);
  as_error(request);
  as_exception(request);
  CHECK(c10::errors_made == 312, "%ld", c10::errors_made.load());
  CHECK(c10::errors_gone == c10::errors_made, "%ld", c10::errors_gone.load());

  // Nothing is broken afterwards.
  void *block = request(1000, 0, nullptr);
  CHECK(block != nullptr, "no block");
  release(block, 1000, 0, nullptr);
  std::puts("ok");
}
