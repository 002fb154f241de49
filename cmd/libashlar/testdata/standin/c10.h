// A stand-in for the part of PyTorch's libraries that the exception shim
// uses: classes of the same names and the same shape, so that the mangled names
// and the layout are those the shim looks for. Objects are counted.
#ifndef ASHLAR_STANDIN_C10_H
#define ASHLAR_STANDIN_C10_H

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#define STANDIN __attribute__((visibility("default")))

namespace c10 {

struct SourceLocation {
  const char *function;
  const char *file;
  uint32_t line;
};

extern STANDIN std::atomic<long> errors_made;
extern STANDIN std::atomic<long> errors_gone;

class STANDIN Error : public std::exception {
 public:
  Error(SourceLocation location, std::string text);
  ~Error() override;
  Error(const Error &) = delete;

  const char *what() const noexcept override;
  virtual const char *what_without_backtrace() const noexcept;

 private:
  std::string text_;
  std::vector<std::string> context_;
  std::shared_ptr<const std::string> backtrace_;
  mutable std::atomic<std::string *> what_{nullptr};
  std::string without_backtrace_;
  const void *caller_ = nullptr;
};

// No key function, as in PyTorch: the vtable is in each library that needs it.
class STANDIN OutOfMemoryError : public Error {
  using Error::Error;
};

}  // namespace c10

#endif
