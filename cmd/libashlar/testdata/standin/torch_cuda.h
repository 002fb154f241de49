// A stand-in for what libtorch_cuda.so has of the pluggable allocator: names
// and shape of the classes are PyTorch's, and the methods that matter do as
// little as there.
//
// One macro at a time makes it a library that must be left alone:
// STANDIN_HIDDEN_TABLE, STANDIN_HIDDEN_METHOD, STANDIN_NO_ENTRY,
// STANDIN_TWO_ENTRIES.
#ifndef ASHLAR_STANDIN_TORCH_CUDA_H
#define ASHLAR_STANDIN_TORCH_CUDA_H

namespace c10::cuda::CUDACachingAllocator {

struct CUDAAllocator {
  virtual ~CUDAAllocator() = default;
  virtual void emptyCache() = 0;
  virtual bool isEnabled() const = 0;
  virtual void cacheInfo(signed char device, unsigned long *largest) = 0;
  virtual void *getBaseAllocation(void *p, unsigned long *size) = 0;
  virtual void twin(signed char device, unsigned long *largest) = 0;
};

}  // namespace c10::cuda::CUDACachingAllocator

// The allocator that is in use, as PyTorch sees it.
extern "C" c10::cuda::CUDACachingAllocator::CUDAAllocator *standin_allocator();

// cacheInfo() for callers that are not C++; 1 if it threw.
extern "C" int standin_cache_info(signed char device, unsigned long *largest);

#endif
