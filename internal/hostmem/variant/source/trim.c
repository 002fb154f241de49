#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *trim(void *unused) {
  for (;; sleep(1)) malloc_trim(0);
  return unused;
}

static void start(void) {
  sigset_t all, before; /* signals are for the program's own threads */
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, 0, trim, 0) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

__attribute__((constructor)) static void load(void) {
  pthread_atfork(0, 0, start); /* a forked child has no threads */
  start();
}
