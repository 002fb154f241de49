#include "torch_cuda.h"

#include <stdexcept>

#define HIDDEN __attribute__((visibility("hidden")))
#define VISIBLE __attribute__((visibility("default")))
#define CACHE_INFO "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9cacheInfoEaPm"

#ifdef STANDIN_HIDDEN_TABLE
#define OF_CLASS HIDDEN
#else
#define OF_CLASS VISIBLE
#endif
#ifdef STANDIN_HIDDEN_METHOD
#define OF_METHOD HIDDEN
#else
#define OF_METHOD VISIBLE
#endif

namespace torch::cuda::CUDAPluggableAllocator {

struct OF_CLASS CUDAPluggableAllocator : c10::cuda::CUDACachingAllocator::CUDAAllocator {
  void emptyCache() override;
  bool isEnabled() const override;
#ifndef STANDIN_NO_ENTRY
  OF_METHOD void cacheInfo(signed char device, unsigned long *largest) override;
#endif
  void *getBaseAllocation(void *p, unsigned long *size) override;
  void twin(signed char device, unsigned long *largest) override;
};

namespace {
[[noreturn]] void unsupported() { throw std::runtime_error("CUDAPluggableAllocator does not yet support cacheInfo"); }
}  // namespace

void CUDAPluggableAllocator::emptyCache() {}
bool CUDAPluggableAllocator::isEnabled() const { return true; }
void *CUDAPluggableAllocator::getBaseAllocation(void *p, unsigned long *) { return p; }

#ifdef STANDIN_NO_ENTRY
// The name is there, but the vtable leads elsewhere.
extern "C" VISIBLE void standin_method(void *, signed char, unsigned long *) __asm__(CACHE_INFO);
extern "C" void standin_method(void *, signed char, unsigned long *) { unsupported(); }
struct Whole : CUDAPluggableAllocator {
  void cacheInfo(signed char, unsigned long *) override { unsupported(); }
};
#else
void CUDAPluggableAllocator::cacheInfo(signed char, unsigned long *) { unsupported(); }
using Whole = CUDAPluggableAllocator;
#endif

#ifdef STANDIN_TWO_ENTRIES
void CUDAPluggableAllocator::twin(signed char, unsigned long *) __attribute__((alias(CACHE_INFO)));
#else
void CUDAPluggableAllocator::twin(signed char, unsigned long *) {}
#endif

}  // namespace torch::cuda::CUDAPluggableAllocator

c10::cuda::CUDACachingAllocator::CUDAAllocator *standin_allocator() {
  static torch::cuda::CUDAPluggableAllocator::Whole allocator;
  return &allocator;
}

int standin_cache_info(signed char device, unsigned long *largest) {
  try {
    standin_allocator()->cacheInfo(device, largest);
  } catch (const std::runtime_error &) {
    return 1;
  }
  return 0;
}
