/* A wall clock that is set forward by an hour two seconds after a process
 * first reads it, as by whoever sets the time of a machine. It is loaded before
 * the C library and leaves a note at $STEPPED_CLOCK_NOTE that it is in use. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void step(time_t *seconds) {
    static time_t first;
    if (!first) {
        const char *note = getenv("STEPPED_CLOCK_NOTE");
        int file = note ? open(note, O_CREAT | O_WRONLY, 0600) : -1;
        if (file >= 0)
            close(file);
        first = *seconds;
    }
    if (*seconds >= first + 2)
        *seconds += 3600;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME)
        step(&now->tv_sec);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
