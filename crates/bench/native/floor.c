/* What an execution costs at least: fork, _exit and wait. Prints nanoseconds of CPU time per child. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(int who) {
  struct rusage used;
  getrusage(who, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **args) {
  int children = count > 1 ? atoi(args[1]) : 1;
  double before = seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN);
  for (int i = 0; i < children; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    waitpid(child, 0, 0);
  }
  double after = seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN);
  printf("%.0f\n", (after - before) / children * 1e9);
  return 0;
}
