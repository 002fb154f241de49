//go:build cgo

// PyTorch's pluggable allocator has setters for most of what is asked of an
// allocator, but none for cacheInfo(): the largest free block. Its method
// throws, and with it torch.backends.cudnn.benchmark = True cannot be used. The
// method is virtual and PyTorch calls it through the base class, so one entry
// of the class's vtable decides what is called.
//
// That entry is replaced, and only if everything is as expected: both symbols
// come from the same library, the vtable is as long as its symbol says, and
// exactly one entry is the method. Otherwise PyTorch is left as it is.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "ashlar.h"
#include "torch_loaded.h"

extern "C" __attribute__((visibility("hidden"))) int error_set(int code, const char *text);  // ashlar_error.c

namespace ashlar {
namespace {

constexpr const char *kVtable = "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE";
constexpr const char *kMethod = "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9cacheInfoEaPm";

// What is called in the method's place. Nothing may be thrown, and whoever asks
// can do without the answer: it keeps its guess if there is none.
void cache_info(void *, signed char device, size_t *largest) noexcept { (void)ashlar_cache_info(device, largest); }

// The vtable as the library's symbol table describes it.
struct Table {
  uintptr_t *entries;
  size_t count;
};

// Returns what is wrong, or null.
const char *find(Table &table, uintptr_t &method) {
  void *handle = loaded(kTorchCuda);
  if (handle == nullptr) return "libtorch_cuda.so is not loaded";
  void *start = dlsym(handle, kVtable);
  void *function = dlsym(handle, kMethod);
  if (start == nullptr) return "libtorch_cuda.so does not export the vtable of CUDAPluggableAllocator";
  if (function == nullptr) return "libtorch_cuda.so does not export CUDAPluggableAllocator::cacheInfo";
  Dl_info of_table{}, of_method{};
  ElfW(Sym) *symbol = nullptr;
  if (dladdr1(start, &of_table, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) == 0 || dladdr(function, &of_method) == 0 ||
      symbol == nullptr || of_table.dli_saddr != start || std::strcmp(of_table.dli_sname, kVtable) != 0)
    return "the loader does not know the vtable of CUDAPluggableAllocator";
  if (of_table.dli_fbase != of_method.dli_fbase) return "the vtable and the method of CUDAPluggableAllocator are of different libraries";
  if (reinterpret_cast<uintptr_t>(start) % sizeof(uintptr_t) != 0) return "the vtable of CUDAPluggableAllocator is not aligned";
  table = {static_cast<uintptr_t *>(start), symbol->st_size / sizeof(uintptr_t)};
  method = reinterpret_cast<uintptr_t>(function);
  return nullptr;
}

// How many entries hold an address; slot is the last of them.
int holding(const Table &table, uintptr_t address, uintptr_t *&slot) {
  int n = 0;
  for (size_t i = 0; i < table.count; i++) {
    if (__atomic_load_n(&table.entries[i], __ATOMIC_ACQUIRE) != address) continue;
    slot = &table.entries[i];
    n++;
  }
  return n;
}

// The protection of mapped memory, or -1. The kernel is asked, because a vtable
// may lie in a page that the loader made read-only, or not.
int protection(uintptr_t address) {
  std::FILE *maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return -1;
  int found = -1;
  char *line = nullptr;
  size_t room = 0;
  while (found < 0 && getline(&line, &room, maps) > 0) {
    unsigned long from = 0, to = 0;
    char bits[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &from, &to, bits) != 3 || address < from || address >= to) continue;
    found = (bits[0] == 'r' ? PROT_READ : 0) | (bits[1] == 'w' ? PROT_WRITE : 0) | (bits[2] == 'x' ? PROT_EXEC : 0);
  }
  std::free(line);
  std::fclose(maps);
  return found;
}

// Writes one entry, which is in one page as it is aligned.
const char *replace(uintptr_t *slot, uintptr_t address) {
  const int before = protection(reinterpret_cast<uintptr_t>(slot));
  if (before < 0) return "/proc/self/maps does not tell how the vtable of CUDAPluggableAllocator is protected";
  const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(slot) / size * size);
  const bool locked = (before & PROT_WRITE) == 0;
  if (locked && mprotect(page, size, before | PROT_WRITE) != 0) return "the vtable of CUDAPluggableAllocator cannot be made writable";
  __atomic_store_n(slot, address, __ATOMIC_RELEASE);
  // If this is refused the page stays writable, which harms nothing.
  if (locked) (void)mprotect(page, size, before);
  return nullptr;
}

const char *complete() {
  const char *allowed = std::getenv("ASHLAR_PATCH_TORCH");
  if (allowed != nullptr && std::strcmp(allowed, "0") == 0) return "ASHLAR_PATCH_TORCH=0";
  Table table{};
  uintptr_t method = 0;
  if (const char *wrong = find(table, method)) return wrong;
  const auto own = reinterpret_cast<uintptr_t>(&cache_info);
  uintptr_t *slot = nullptr, *done = nullptr;
  const int theirs = holding(table, method, slot), ours = holding(table, own, done);
  if (ours == 1 && theirs == 0) return nullptr;
  if (theirs != 1 || ours != 0) return "the vtable of CUDAPluggableAllocator does not hold cacheInfo exactly once";
  return replace(slot, own);
}

}  // namespace
}  // namespace ashlar

int ashlar_complete_torch(void) noexcept {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const char *wrong = ashlar::complete();
  if (wrong == nullptr) return 1;
  return error_set(0, wrong);
}
