// A malloc that passes calls on, as profilers preload it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#ifdef OTHER_NAME // that of glibc, which needs no looking up
void *__libc_malloc(size_t n);
void *malloc(size_t n) { return __libc_malloc(n); }
#else
void *malloc(size_t n) {
	static void *(*next)(size_t);
	if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	return next(n);
}
#endif
