//go:build cgo

#include "torch_throw.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "ashlar.h"
#include "torch_loaded.h"

namespace ashlar {
namespace {

// What is needed of c10::OutOfMemoryError. It adds nothing to c10::Error but
// its type, so an Error with another vtable pointer is one.
struct ErrorClass {
  void *construct = nullptr;  // c10::Error's constructor
  void (*call)(void *construct, void *memory, const char *text) = nullptr;
  void *vtable = nullptr;
  std::type_info *type = nullptr;
};

// The constructor with the new and the old std::string.
constexpr const char *kConstructNew =
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char *kConstructOld = "_ZN3c105ErrorC2ENS_14SourceLocationESs";
constexpr const char *kVtable = "_ZTVN3c1016OutOfMemoryErrorE";
constexpr const char *kType = "_ZTIN3c1016OutOfMemoryErrorE";

// Where to look. The class has no key function: each library that throws it has
// a copy of the vtable, and any will do, types are compared by name.
constexpr Library kLibraries[] = {kC10, kC10Cuda, kTorchCuda};
constexpr int kCount = sizeof kLibraries / sizeof kLibraries[0];

void *find(void *const (&handles)[kCount], const char *symbol) {
  for (void *handle : handles) {
    if (handle == nullptr) continue;
    if (void *address = dlsym(handle, symbol)) return address;
  }
  return nullptr;
}

bool resolve(ErrorClass &out) {
  void *handles[kCount];
  for (int i = 0; i < kCount; i++) handles[i] = loaded(kLibraries[i]);
  ErrorClass found;
  if ((found.construct = find(handles, kConstructNew)) != nullptr) {
    found.call = construct_new_string;
  } else if ((found.construct = find(handles, kConstructOld)) != nullptr) {
    found.call = construct_old_string;
  }
  found.vtable = find(handles, kVtable);
  found.type = static_cast<std::type_info *>(find(handles, kType));
  if (found.construct == nullptr || found.vtable == nullptr || found.type == nullptr) return false;
  out = found;
  return true;
}

// Found once; looked for again as long as it is not there, because PyTorch may
// be loaded later.
const ErrorClass *out_of_memory_error() {
  static std::mutex mutex;
  static ErrorClass known;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.construct == nullptr && !resolve(known)) return nullptr;
  return &known;
}

}  // namespace

void construct_new_string(void *construct, void *memory, const char *text) {
  // A constructor is called like a function whose first argument is the object.
  // The compiler does with the others what the ABI says.
  using Construct = void (*)(void *, SourceLocation, std::string);
  reinterpret_cast<Construct>(construct)(memory, SourceLocation{"ashlar_malloc", "libashlar", 0}, text);
}

void throw_out_of_memory(const char *text) {
  const ErrorClass *error = out_of_memory_error();
  if (error == nullptr) throw_failure(text);
  void *memory = abi::__cxa_allocate_exception(kErrorBytes);
  try {
    error->call(error->construct, memory, text);
  } catch (...) {
    abi::__cxa_free_exception(memory);
    throw;
  }
  // A vtable begins with two words that objects do not point at. Its first
  // entry is the destructor of a whole object, as the virtual destructor is
  // what std::exception declares first.
  void **entries = static_cast<void **>(error->vtable) + 2;
  *static_cast<void ***>(memory) = entries;
  auto destroy = reinterpret_cast<void (*)(void *)>(entries[0]);
  abi::__cxa_throw(memory, error->type, destroy);
}

void throw_failure(const char *text) { throw std::runtime_error(text); }

void throw_code(int code, const char *text) {
  if (text == nullptr || *text == '\0') text = "ashlar: the request failed, and no reason was given";
  if (code == ASHLAR_OOM) throw_out_of_memory(text);
  throw_failure(text);
}

void complain(const char *where) noexcept {
  char line[1024];
  const char *text = ashlar_error_text();
  const int length = std::snprintf(line, sizeof line, "ashlar: %s: %s\n", where, text != nullptr ? text : "failed");
  if (length <= 0) return;
  size_t size = static_cast<size_t>(length);
  if (size >= sizeof line) {
    size = sizeof line;
    line[size - 1] = '\n';
  }
  // One write, so that lines of several threads do not mix.
  (void)!write(STDERR_FILENO, line, size);
}

}  // namespace ashlar
