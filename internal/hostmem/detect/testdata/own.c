// A malloc of its own, as small programs bring it: it gives nothing back.
#include <stddef.h>
#include <string.h>

static char memory[1 << 20];
static size_t used;

void *malloc(size_t n) {
	n = (n + 31) & ~(size_t)15;
	if (n > sizeof memory - used) return NULL;
	used += n;
	return memory + used - n;
}

void free(void *p) { (void)p; }

void *calloc(size_t n, size_t size) { return malloc(n * size); }

void *realloc(void *p, size_t n) {
	void *q = malloc(n);
	if (p && q) memcpy(q, p, n);
	return q;
}
