//go:build cgo

// The constructor with the std::string from before C++11, in a file of its own
// because the choice of the string holds for a whole file.
#define _GLIBCXX_USE_CXX11_ABI 0

#include <string>

#include "torch_throw.h"

namespace ashlar {

void construct_old_string(void *construct, void *memory, const char *text) {
  using Construct = void (*)(void *, SourceLocation, std::string);
  reinterpret_cast<Construct>(construct)(memory, SourceLocation{"ashlar_malloc", "libashlar", 0}, text);
}

}  // namespace ashlar
