// A program to look into: it says "up" and waits for the end of its input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef THREADS
#include <pthread.h>
// Each thread keeps a block, so that glibc gives each an arena.
static void *keep(void *ready) {
	char *p = malloc(100000);
	memset(p, 1, 100000);
	pthread_barrier_wait(ready);
	pause();
	return p;
}
#endif

#ifdef DLOPEN
#include <dlfcn.h>
#endif

#ifdef CLOSED
#include <sys/prctl.h>
#endif

#ifdef LEADERLESS // the first thread ends, another goes on
#include <pthread.h>
static void *go_on(void *first) {
	char c;
	char *p = malloc(100000);
	memset(p, 1, 100000);
	pthread_join(*(pthread_t *)first, NULL);
	if (write(1, "up\n", 3) != 3) return p;
	while (read(0, &c, 1) > 0)
		;
	exit(0);
}
static pthread_t first;
#endif

#ifdef ADDRESS // the program's own stub becomes the address of malloc
static void *(*volatile address)(size_t);
#endif

int main(int argc, char **argv) {
	char c;
#ifdef ADDRESS
	address = malloc;
#endif
#ifdef THREADS
	pthread_barrier_t ready;
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, keep, &ready)) return 1;
	}
	pthread_barrier_wait(&ready);
#endif
#ifdef DLOPEN
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
#endif
#ifdef CLOSED
	if (prctl(PR_SET_DUMPABLE, 0)) return 1;
#endif
#ifdef FORKED // the child is the one to look into
	if (fork()) {
		while (read(0, &c, 1) > 0)
			;
		return 0;
	}
#endif
#ifdef LEADERLESS
	pthread_t t;
	first = pthread_self();
	if (pthread_create(&t, NULL, go_on, &first)) return 1;
	pthread_exit(NULL);
#endif
#ifdef NEVER // malloc is imported but not called yet
	if (argc > 99) free(malloc(argc));
#else
	char *p = malloc(100000);
	memset(p, 1, 100000);
	if (argc > 99) puts(p); // or the compiler drops it
#endif
	if (write(1, "up\n", 3) != 3) return 1;
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
