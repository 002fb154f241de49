// How a failed request leaves the library: as a C++ exception.
//
// PyTorch checks nothing of what its pluggable allocator returns, so an
// exception is the only way to say no. It has to be c10::OutOfMemoryError
// itself, because callers catch it by type: PyTorch turns it into
// torch.OutOfMemoryError, and cuDNN's search for algorithms goes on to one
// that needs less memory. The library is built without PyTorch, so the class
// is found at run time in the libraries that the process has loaded.
//
// Everything here runs after Go has returned: an exception cannot unwind
// through Go frames.
#ifndef ASHLAR_TORCH_THROW_H
#define ASHLAR_TORCH_THROW_H

#define ASHLAR_EXPORT extern "C" __attribute__((visibility("default"), used))

namespace ashlar {

// Throws c10::OutOfMemoryError with text, or std::runtime_error where PyTorch
// is not loaded or has not the symbols it had.
[[noreturn]] void throw_out_of_memory(const char *text);

// Throws std::runtime_error, which Python sees as RuntimeError.
[[noreturn]] void throw_failure(const char *text);

// Throws what a code of ashlar.h other than ASHLAR_OK stands for.
[[noreturn]] void throw_code(int code, const char *text);

// One line on standard error for failures where nothing may be thrown.
void complain(const char *where) noexcept;

// Memory for an exception object. A c10::OutOfMemoryError takes 128 bytes in
// PyTorch 2.11; what lies behind it is never looked at: the object is made and
// destroyed in place, and a catch by value copies with the size its own
// compiler knew. Eight times as much leaves room for members to come.
constexpr unsigned long kErrorBytes = 1024;

// Calls the constructor c10::Error(SourceLocation, std::string) at address
// construct on memory, for each of the two std::string of libstdc++. They
// differ in layout and in the mangled name, and PyTorch's packages up to 2.6
// were built with the old one.
void construct_new_string(void *construct, void *memory, const char *text);
void construct_old_string(void *construct, void *memory, const char *text);

// c10::SourceLocation, the constructor's first argument.
struct SourceLocation {
  const char *function;
  const char *file;
  unsigned line;
};

}  // namespace ashlar

#endif
