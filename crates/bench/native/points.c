/* Scheduling points at which no thread is switched: one thread locks a mutex while the other one
   waits to be joined. Writes nanoseconds of CPU time per point to the file that it is given. */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 9000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double each;

/* The clock of the C library shows virtual time. */
static double now(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *run(void *arg) {
  double before = now();
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
  }
  each = (now() - before) / (2 * ROUNDS);
  return arg;
}

int main(int count, char **args) {
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  pthread_join(thread, 0);
  FILE *file = count > 1 ? fopen(args[1], "a") : 0;
  if (file) {
    fprintf(file, "%.1f\n", each);
    fclose(file);
  }
  return 0;
}
