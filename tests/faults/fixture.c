/* SPDX-License-Identifier: Apache-2.0 */
/* See fixture.h. */
#include "fixture.h"

#include "server_program.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
    (void)printf("not ok - %s: %s\n", what, strerror(errno));
    exit(1);
}

static _Noreturn void usage(const char *program)
{
    (void)printf("not ok - usage: %s [URL] [--rounds N] [--seed N] [--store SCHEME:] "
                 "[--server PROGRAM]\n",
                 program);
    exit(1);
}

static uint64_t number_of(const char *text, const char *program)
{
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || *text == '\0' || *end != '\0')
        usage(program);
    return number;
}

static void read_options(struct fixture *fixture, int argc, char **argv)
{
    const char *named = getenv("LEASEHOLD_TEST_STORE"), *scheme = named != NULL ? named : "file:";
    int first = 1;
    if (argc > 1 && argv[1][0] != '-')
        scheme = argv[first++];
    for (int i = first; i < argc; i += 2) {
        if (i + 1 == argc)
            usage(argv[0]);
        if (strcmp(argv[i], "--rounds") == 0)
            fixture->rounds = number_of(argv[i + 1], argv[0]);
        else if (strcmp(argv[i], "--seed") == 0)
            fixture->seed = number_of(argv[i + 1], argv[0]);
        else if (strcmp(argv[i], "--store") == 0)
            scheme = argv[i + 1];
        else if (strcmp(argv[i], "--server") == 0)
            fixture->server = argv[i + 1];
        else
            usage(argv[0]);
    }
    fixture->driver = store_find(scheme);
    if (fixture->driver == NULL || fixture->rounds == 0)
        usage(argv[0]);
    fixture->given = strstr(scheme, "://") != NULL;
    (void)snprintf(fixture->url, sizeof fixture->url, "%s", scheme);
}

static void make_folder(struct fixture *fixture)
{
    const char *where = getenv("TMPDIR");
    (void)snprintf(fixture->folder, sizeof fixture->folder, "%.100s/leasehold-XXXXXX",
                   where != NULL ? where : "/tmp");
    if (mkdtemp(fixture->folder) == NULL)
        die("mkdtemp");
    fixture_name_store(fixture, "store");
}

void fixture_name_store(struct fixture *fixture, const char *name)
{
    if (!fixture->given)
        (void)snprintf(fixture->url, sizeof fixture->url, "%s:%s/%s", fixture->driver->scheme,
                       fixture->folder, name);
}

bool fixture_knows_dead(const struct fixture *fixture)
{
    return (fixture->driver->capabilities & STORE_SESSIONS) != 0;
}

static void *share(size_t size)
{
    int file = memfd_create("shared", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size) != 0)
        die("memfd_create");
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED)
        die("mmap");
    (void)close(file);
    return shared;
}

void fixture_open(struct fixture *fixture, int argc, char **argv, uint64_t rounds, int64_t limit_s,
                  int64_t round_ms, size_t shared_size)
{
    *fixture = (struct fixture){.rounds = rounds, .seed = (uint64_t)fixture_now_us() % 1000000};
    read_options(fixture, argc, argv);
    fixture->random.state = fixture->seed;
    fixture->end_at_ms = live_now_ms() + limit_s * 1000 + (int64_t)fixture->rounds * round_ms;
    fixture->shared = share(shared_size);
    make_folder(fixture);
    if (fixture->server != NULL && !server_start(fixture))
        die(fixture->server);
    fixture_print("%s: %" PRIu64 " rounds, seed %" PRIu64, argv[0], fixture->rounds, fixture->seed);
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)what, (void)kind, (void)where;
    return remove(path);
}

int fixture_close(struct fixture *fixture)
{
    for (size_t child = 0; child < CHILDREN_MAX; child++)
        (void)fixture_kill(fixture, child);
    if (!server_stop(fixture))
        fixture_case(fixture, false, "%s could not end the server", fixture->server);
    if (nftw(fixture->folder, remove_one, /* nopenfd= */ 16, FTW_DEPTH | FTW_PHYS) != 0)
        fixture_case(fixture, false, "the folder %s could not be removed", fixture->folder);
    (void)printf("1..%u\n", fixture->cases);
    return fflush(stdout) != 0 || fixture->failed > 0;
}

void fixture_case(struct fixture *fixture, bool ok, const char *text, ...)
{
    va_list list;
    va_start(list, text);
    fixture->failed += ok ? 0 : 1;
    (void)printf("%s %u - ", ok ? "ok" : "not ok", ++fixture->cases);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    (void)vprintf(text, list);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(list);
}

void fixture_print(const char *text, ...)
{
    va_list list;
    va_start(list, text);
    (void)printf("# ");
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    (void)vprintf(text, list);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(list);
}

bool fixture_late(const struct fixture *fixture)
{
    return live_now_ms() >= fixture->end_at_ms;
}

static size_t files_seen;

static int count_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)path, (void)what, (void)kind;
    files_seen += where->level > 0 ? 1 : 0;
    return 0;
}

size_t fixture_files(const struct fixture *fixture)
{
    files_seen = 0;
    if (nftw(fixture->folder, count_one, /* nopenfd= */ 16, FTW_PHYS) != 0)
        die("nftw");
    return files_seen;
}

void fixture_start(struct fixture *fixture, size_t child, fixture_work *work)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0) {
        fixture->pids[child] = pid;
        return;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    work(fixture, child);
    _exit(0);
}

/* Reaps the child, blocking or not; true when one was reaped. */
static bool collect(struct fixture *fixture, size_t child, int how, int *status)
{
    pid_t got = 0;
    do
        got = waitpid(fixture->pids[child], status, how);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        die("waitpid");
    if (got > 0)
        fixture->pids[child] = 0;
    return got > 0;
}

bool fixture_kill(struct fixture *fixture, size_t child)
{
    int status = 0;
    if (fixture->pids[child] == 0)
        return false;
    (void)kill(fixture->pids[child], SIGKILL);
    (void)collect(fixture, child, 0, &status);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool fixture_lives(const struct fixture *fixture, size_t child)
{
    siginfo_t info = {0};
    if (fixture->pids[child] == 0)
        return false;
    int result = waitid(P_PID, (id_t)fixture->pids[child], &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 && info.si_pid == 0;
}

bool fixture_stop(struct fixture *fixture, size_t child)
{
    siginfo_t info = {0};
    if (fixture->pids[child] == 0 || kill(fixture->pids[child], SIGSTOP) != 0)
        return false;
    int result = waitid(P_PID, (id_t)fixture->pids[child], &info, WSTOPPED | WEXITED | WNOWAIT);
    return result == 0 && info.si_code == CLD_STOPPED;
}

void fixture_continue(const struct fixture *fixture, size_t child)
{
    (void)kill(fixture->pids[child], SIGCONT);
}

bool fixture_join(struct fixture *fixture, size_t child)
{
    int status = 0;
    if (fixture->pids[child] == 0)
        return false;
    while (!collect(fixture, child, WNOHANG, &status)) {
        if (fixture_late(fixture)) {
            (void)fixture_kill(fixture, child);
            return false;
        }
        fixture_pause_us(500);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct live *fixture_live(const struct fixture *fixture, uint64_t session, int64_t timeout_ms)
{
    char text[256];
    struct text why;
    struct live *live = NULL;
    /* Creating a store takes as long as the disk does, which may exceed the timeout. */
    do {
        text_init(&why, text, sizeof text);
        live = live_open(fixture->driver, fixture->url, session, timeout_ms, &why);
    } while (live == NULL && !fixture_late(fixture));
    if (live == NULL) {
        fixture_print("the store did not open: %s", text);
        _exit(1);
    }
    return live;
}

uint64_t fixture_session(struct fixture *fixture)
{
    return random_next(&fixture->random) | 1;
}

void fixture_pause_us(int64_t length_us)
{
    struct timespec length = {.tv_sec = length_us / 1000000,
                              .tv_nsec = (long)(length_us % 1000000 * 1000)};
    (void)nanosleep(&length, NULL);
}

void fixture_spin_us(int64_t length_us)
{
    int64_t now_us = fixture_now_us(), end_us = now_us + length_us;
    while (now_us < end_us)
        now_us = fixture_now_us();
}

int64_t fixture_now_us(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        abort();
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t fixture_unscheduled_us(pid_t pid)
{
    char path[64] = "/proc/thread-self/schedstat", text[64] = "";
    if (pid != 0)
        (void)snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    const char *second = length > 0 ? strchr(text, ' ') : NULL;
    return second != NULL ? (int64_t)(strtoull(second, NULL, 10) / 1000) : 0;
}
