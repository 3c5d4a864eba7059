/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_process.h. */
#include "bench_process.h"

#include "rounds.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *bench_share(size_t size)
{
    int file = memfd_create("shared", MFD_CLOEXEC);
    void *page = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)size) == 0)
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, /* offset= */ 0);
    if (page == MAP_FAILED)
        rounds_fail("share", strerror(errno));
    (void)close(file);
    return page;
}

void bench_unshare(void *shared, size_t size)
{
    (void)munmap(shared, size);
}

pid_t bench_fork(void)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        rounds_fail("fork", strerror(errno));
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return child;
}

void bench_wait(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        rounds_fail("a process of the benchmark", "did not end well");
}

void bench_sleep_us(long us)
{
    struct timespec length = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&length, NULL);
}
