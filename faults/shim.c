/* Preloaded into a server: moves its wall clock, and makes its disk slow to confirm.

   The file that FAULTS_KNOBS names holds two numbers of 64 bits, which may change at any time: nanoseconds that are added
   to the wall clock, and microseconds that every fsync takes longer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long long none[2];
static const volatile long long *knobs = none;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FAULTS_KNOBS");
  int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) knobs = found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && knobs[0]) {
    long long moved = now->tv_sec * 1000000000LL + now->tv_nsec + knobs[0];
    now->tv_sec = moved / 1000000000LL;
    now->tv_nsec = moved % 1000000000LL;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *into) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (into) *into = exact.tv_sec;
  return exact.tv_sec;
}

static int slowly(long call, int file) {
  if (knobs[1] > 0) usleep(knobs[1]);
  return syscall(call, file);
}

int fsync(int file) { return slowly(SYS_fsync, file); }
int fdatasync(int file) { return slowly(SYS_fdatasync, file); }
