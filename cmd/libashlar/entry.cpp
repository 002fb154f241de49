// The functions that PyTorch calls by address, but for those of pools
// (spec 12.1). They are thin: the work is done behind ashlar.h, and what is
// left is to turn a code into an exception.
#include <atomic>

#include "ashlar.h"
#include "throw.h"

namespace {

// Told of each call while somebody wants to know who makes them.
std::atomic<ashlar_witness> witness{nullptr};

inline void tell(int action, int device, void *block, size_t size) {
  const ashlar_witness told = witness.load(std::memory_order_acquire);
  if (__builtin_expect(told != nullptr, 0)) told(action, device, block, size);
}

}  // namespace

// Size 0 gives null, every other pointer is unique. Throws when there is none.
ASHLAR_EXPORT void *ashlar_malloc(size_t size, int device, void *stream) {
  void *block = nullptr;
  const int code = ashlar_front_malloc(size, device, stream, &block);
  if (__builtin_expect(code != ASHLAR_OK, 0)) {
    if (code == ASHLAR_OOM) tell(ASHLAR_TOLD_OOM, device, nullptr, size);
    ashlar::throw_code(code);
  }
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

ASHLAR_EXPORT void ashlar_set_witness(ashlar_witness told) { witness.store(told, std::memory_order_release); }

// PyTorch's setters take functions that return nothing, so that a failure has
// to be thrown to be heard.

ASHLAR_EXPORT void ashlar_torch_init(int device_count) {
  if (const int code = ashlar_init(device_count)) ashlar::throw_code(code);
}

ASHLAR_EXPORT void ashlar_torch_reset(void) {
  if (const int code = ashlar_reset()) ashlar::throw_code(code);
}

ASHLAR_EXPORT void ashlar_torch_set_memory_fraction(double fraction, int device) {
  if (const int code = ashlar_set_memory_fraction(fraction, device)) ashlar::throw_code(code);
}
