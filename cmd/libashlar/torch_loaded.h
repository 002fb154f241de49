// Libraries of PyTorch that the process has loaded.
//
// The library is built without PyTorch, so what it needs of it is looked up at
// run time. It never loads anything: without PyTorch there is nothing to find.
#ifndef ASHLAR_TORCH_LOADED_H
#define ASHLAR_TORCH_LOADED_H

namespace ashlar {

// A library by its name, and by the beginning of the name for packages that
// rename the files.
struct Library {
  const char *name;
  const char *prefix;
};

constexpr Library kC10 = {"libc10.so", "libc10"};
constexpr Library kC10Cuda = {"libc10_cuda.so", "libc10_cuda"};
constexpr Library kTorchCuda = {"libtorch_cuda.so", "libtorch_cuda"};

// A handle of a library that is loaded already, or null. It is never closed:
// what is found in it must stay.
void *loaded(const Library &library);

}  // namespace ashlar

#endif
