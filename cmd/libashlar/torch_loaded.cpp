//go:build cgo

#include "torch_loaded.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace ashlar {
namespace {

struct Search {
  const char *prefix;
  char path[4096];
};

int match(dl_phdr_info *info, size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  const char *slash = std::strrchr(info->dlpi_name, '/');
  const char *base = slash != nullptr ? slash + 1 : info->dlpi_name;
  const size_t length = std::strlen(search->prefix);
  if (std::strncmp(base, search->prefix, length) != 0) return 0;
  // libc10 must not find libc10_cuda.
  if (base[length] != '.' && base[length] != '-') return 0;
  if (std::strlen(info->dlpi_name) >= sizeof search->path) return 0;
  std::strcpy(search->path, info->dlpi_name);
  return 1;
}

}  // namespace

void *loaded(const Library &library) {
  if (void *handle = dlopen(library.name, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  Search search{library.prefix, {}};
  if (dl_iterate_phdr(match, &search) == 0) return nullptr;
  return dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace ashlar
