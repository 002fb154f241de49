//go:build cgo

// The pool functions of PyTorch's allocator interface: a CUDA graph's memory
// comes from a pool of its own, and is not used for anything else until the
// graph is gone.
//
// PyTorch calls these by address with C++ types, so their signatures are those
// of its setters. A filter says for a stream whether the pool is meant; it is
// kept from begin to end, and Go calls it through accept.
#include <functional>
#include <mutex>
#include <utility>

#include "ashlar.h"
#include "torch_throw.h"

struct CUstream_st;

namespace ashlar {
namespace {

using Stream = CUstream_st *;
using PoolId = std::pair<unsigned long long, unsigned long long>;
using Filter = std::function<bool(Stream)>;

// A route that is being taken: requests that the filter accepts go to the pool.
struct Route {
  int device;
  PoolId id;
  Filter filter;
  Route *next;
};

// There is one capture at a time as a rule, so a list is all that is needed.
class Routes {
 public:
  void add(Route *route) {
    const std::lock_guard<std::mutex> lock(mutex_);
    route->next = first_;
    first_ = route;
  }

  // Takes out the newest route to the pool, or null.
  Route *take(int device, const PoolId &id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Route **at = &first_; *at != nullptr; at = &(*at)->next) {
      Route *route = *at;
      if (route->device == device && route->id == id) {
        *at = route->next;
        return route;
      }
    }
    return nullptr;
  }

 private:
  std::mutex mutex_;
  Route *first_ = nullptr;
};

Routes &routes() {
  static Routes instance;
  return instance;
}

// Called by Go, on the thread of the request. Go frames lie above, so that
// nothing may be thrown: a filter that fails does not accept.
bool accept(void *context, void *stream) {
  try {
    return static_cast<Route *>(context)->filter(static_cast<Stream>(stream));
  } catch (...) {
    return false;
  }
}

}  // namespace
}  // namespace ashlar

ASHLAR_EXPORT void ashlar_begin_allocate_to_pool(int device, ashlar::PoolId id, ashlar::Filter filter) {
  auto *route = new ashlar::Route{device, id, std::move(filter), nullptr};
  // Known before Go may use it, and so before an end on another thread.
  ashlar::routes().add(route);
  const int code = ashlar_front_begin_pool(device, id.first, id.second, ashlar::accept, route);
  if (code == ASHLAR_OK) return;
  delete ashlar::routes().take(device, id);
  ashlar::throw_code(code, ashlar_error_text());
}

// PyTorch ends and releases pools in destructors too: nothing is thrown.

ASHLAR_EXPORT void ashlar_end_allocate_to_pool(int device, ashlar::PoolId id) noexcept {
  if (ashlar_front_end_pool(device, id.first, id.second) != ASHLAR_OK) ashlar::complain("end of a pool");
  // Go calls the filter no more.
  delete ashlar::routes().take(device, id);
}

ASHLAR_EXPORT void ashlar_release_pool(int device, ashlar::PoolId id) noexcept {
  if (ashlar_front_release_pool(device, id.first, id.second) != ASHLAR_OK) ashlar::complain("release of a pool");
}
