//go:build cgo

// The functions that PyTorch calls by address, but for those of pools
// (spec 12.1). They are thin: the work is done behind ashlar.h, and what is
// left is to turn a code into an exception.
#include <unistd.h>

#include <atomic>
#include <string>

#include "ashlar.h"
#include "torch_throw.h"

namespace {

// Told of each call while somebody wants to know who makes them.
std::atomic<ashlar_witness> witness{nullptr};
std::atomic<int> telling{0};  // threads that are about to call it, or do
thread_local bool inside = false;

[[gnu::noinline, gnu::cold]] void tell_witness(int action, int device, void *block, size_t size) {
  const bool outer = !inside;  // what is told may free memory itself
  inside = true;
  telling.fetch_add(1);
  if (const ashlar_witness told = witness.load()) told(action, device, block, size);
  telling.fetch_sub(1);
  if (outer) inside = false;
}

inline void tell(int action, int device, void *block, size_t size) {
  if (__builtin_expect(witness.load(std::memory_order_relaxed) != nullptr, 0)) tell_witness(action, device, block, size);
}

// Apart from ashlar_malloc, which stays small this way.
[[noreturn, gnu::noinline, gnu::cold]] void refuse(int code, int device, size_t size) {
  const std::string text = ashlar_error_text();  // what is told may run into errors of its own
  if (code == ASHLAR_OOM) tell(ASHLAR_TOLD_OOM, device, nullptr, size);
  ashlar::throw_code(code, text.c_str());
}

}  // namespace

// Size 0 gives null, every other pointer is unique. Throws when there is none.
ASHLAR_EXPORT void *ashlar_malloc(size_t size, int device, void *stream) {
  void *block = nullptr;
  const int code = ashlar_front_malloc(size, device, stream, &block);
  if (__builtin_expect(code != ASHLAR_OK, 0)) refuse(code, device, size);
  if (block != nullptr) tell(ASHLAR_TOLD_ALLOC, device, block, size);
  return block;
}

// Tensors are freed in destructors, so that nothing may be thrown.
ASHLAR_EXPORT void ashlar_free(void *block, size_t size, int device, void *stream) noexcept {
  if (block != nullptr) tell(ASHLAR_TOLD_FREE, device, block, size);
  ashlar_front_free(block, size, device, stream);
}

ASHLAR_EXPORT void ashlar_record_stream(void *block, void *stream) noexcept {
  if (ashlar_front_record_stream(block, stream) != ASHLAR_OK) ashlar::complain("record_stream");
}

// Returns when the witness before is not being called any more, so that it may
// go away. A witness that waits for the caller is not waited for longer than a
// second.
ASHLAR_EXPORT void ashlar_set_witness(ashlar_witness told) {
  if (witness.exchange(told) == told || inside) return;
  for (int i = 0; i < 10000 && telling.load() != 0; i++) usleep(100);
}

// PyTorch's setters take functions that return nothing, so that a failure has
// to be thrown to be heard.

ASHLAR_EXPORT void ashlar_torch_init(int device_count) {
  if (const int code = ashlar_init(device_count)) ashlar::throw_code(code, ashlar_error_text());
}

ASHLAR_EXPORT void ashlar_torch_reset(void) {
  if (const int code = ashlar_reset()) ashlar::throw_code(code, ashlar_error_text());
}

ASHLAR_EXPORT void ashlar_torch_set_memory_fraction(double fraction, int device) {
  if (const int code = ashlar_set_memory_fraction(fraction, device)) ashlar::throw_code(code, ashlar_error_text());
}
