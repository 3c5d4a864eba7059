/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. */
#include "rig.h"

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
    (void)printf("not ok - usage: %s [URL] [--rounds N] [--seed N] [--store SCHEME:]\n", program);
    exit(1);
}

static uint64_t number_of(const char *words, const char *program)
{
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(words, &end, 10);
    if (errno != 0 || *words == '\0' || *end != '\0')
        usage(program);
    return number;
}

static void read_options(struct rig *rig, int argc, char **argv)
{
    const char *named = getenv("LEASEHOLD_TEST_STORE"), *scheme = named != NULL ? named : "file:";
    int first = 1;
    if (argc > 1 && argv[1][0] != '-')
        scheme = argv[first++];
    for (int i = first; i < argc; i += 2) {
        if (i + 1 == argc)
            usage(argv[0]);
        if (strcmp(argv[i], "--rounds") == 0)
            rig->rounds = number_of(argv[i + 1], argv[0]);
        else if (strcmp(argv[i], "--seed") == 0)
            rig->seed = number_of(argv[i + 1], argv[0]);
        else if (strcmp(argv[i], "--store") == 0)
            scheme = argv[i + 1];
        else
            usage(argv[0]);
    }
    rig->driver = store_find(scheme);
    if (rig->driver == NULL || rig->rounds == 0)
        usage(argv[0]);
    rig->given = strstr(scheme, "://") != NULL;
    (void)snprintf(rig->url, sizeof rig->url, "%s", scheme);
}

static void make_folder(struct rig *rig)
{
    const char *where = getenv("TMPDIR");
    (void)snprintf(rig->folder, sizeof rig->folder, "%.100s/leasehold-XXXXXX",
                   where != NULL ? where : "/tmp");
    if (mkdtemp(rig->folder) == NULL)
        die("mkdtemp");
    rig_name_store(rig, "store");
}

void rig_name_store(struct rig *rig, const char *name)
{
    if (!rig->given)
        (void)snprintf(rig->url, sizeof rig->url, "%s:%s/%s", rig->driver->scheme, rig->folder,
                       name);
}

bool rig_knows_dead(const struct rig *rig)
{
    return (rig->driver->capabilities & STORE_SESSIONS) != 0;
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

void rig_open(struct rig *rig, int argc, char **argv, uint64_t rounds, int64_t limit_s,
              int64_t round_ms, size_t shared_size)
{
    *rig = (struct rig){.rounds = rounds, .seed = (uint64_t)rig_now_us() % 1000000};
    read_options(rig, argc, argv);
    rig->random.state = rig->seed;
    rig->end_at_ms = live_now_ms() + limit_s * 1000 + (int64_t)rig->rounds * round_ms;
    rig->shared = share(shared_size);
    make_folder(rig);
    rig_say("%s: %" PRIu64 " rounds, seed %" PRIu64, argv[0], rig->rounds, rig->seed);
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)what, (void)kind, (void)where;
    return remove(path);
}

int rig_close(struct rig *rig)
{
    for (size_t seat = 0; seat < SEATS_MAX; seat++)
        (void)rig_kill(rig, seat);
    if (nftw(rig->folder, remove_one, /* nopenfd= */ 16, FTW_DEPTH | FTW_PHYS) != 0)
        rig_case(rig, false, "the folder %s could not be removed", rig->folder);
    (void)printf("1..%u\n", rig->cases);
    return fflush(stdout) != 0 || rig->failed > 0;
}

void rig_case(struct rig *rig, bool ok, const char *words, ...)
{
    va_list list;
    va_start(list, words);
    rig->failed += ok ? 0 : 1;
    (void)printf("%s %u - ", ok ? "ok" : "not ok", ++rig->cases);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    (void)vprintf(words, list);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(list);
}

void rig_say(const char *words, ...)
{
    va_list list;
    va_start(list, words);
    (void)printf("# ");
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    (void)vprintf(words, list);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(list);
}

bool rig_late(const struct rig *rig)
{
    return live_now_ms() >= rig->end_at_ms;
}

static size_t files_seen;

static int count_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)path, (void)what, (void)kind;
    files_seen += where->level > 0 ? 1 : 0;
    return 0;
}

size_t rig_files(const struct rig *rig)
{
    files_seen = 0;
    if (nftw(rig->folder, count_one, /* nopenfd= */ 16, FTW_PHYS) != 0)
        die("nftw");
    return files_seen;
}

void rig_start(struct rig *rig, size_t seat, rig_work *work)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0) {
        rig->pids[seat] = pid;
        return;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    work(rig, seat);
    _exit(0);
}

/* Collects it, waiting for it or not; true when there was something to collect. */
static bool collect(struct rig *rig, size_t seat, int how, int *status)
{
    pid_t got = 0;
    do
        got = waitpid(rig->pids[seat], status, how);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        die("waitpid");
    if (got > 0)
        rig->pids[seat] = 0;
    return got > 0;
}

bool rig_kill(struct rig *rig, size_t seat)
{
    int status = 0;
    if (rig->pids[seat] == 0)
        return false;
    (void)kill(rig->pids[seat], SIGKILL);
    (void)collect(rig, seat, 0, &status);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool rig_lives(const struct rig *rig, size_t seat)
{
    siginfo_t info = {0};
    if (rig->pids[seat] == 0)
        return false;
    int result = waitid(P_PID, (id_t)rig->pids[seat], &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 && info.si_pid == 0;
}

bool rig_stop(struct rig *rig, size_t seat)
{
    siginfo_t info = {0};
    if (rig->pids[seat] == 0 || kill(rig->pids[seat], SIGSTOP) != 0)
        return false;
    int result = waitid(P_PID, (id_t)rig->pids[seat], &info, WSTOPPED | WEXITED | WNOWAIT);
    return result == 0 && info.si_code == CLD_STOPPED;
}

void rig_continue(const struct rig *rig, size_t seat)
{
    (void)kill(rig->pids[seat], SIGCONT);
}

bool rig_join(struct rig *rig, size_t seat)
{
    int status = 0;
    if (rig->pids[seat] == 0)
        return false;
    while (!collect(rig, seat, WNOHANG, &status)) {
        if (rig_late(rig)) {
            (void)rig_kill(rig, seat);
            return false;
        }
        rig_pause_us(500);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct live *rig_live(const struct rig *rig, uint64_t session, int64_t patience_ms)
{
    char words[256];
    struct text why;
    struct live *live = NULL;
    /* To make a store takes as long as the disk does, which may be longer than the timeout. */
    do {
        text_init(&why, words, sizeof words);
        live = live_open(rig->driver, rig->url, session, patience_ms, &why);
    } while (live == NULL && !rig_late(rig));
    if (live == NULL) {
        rig_say("the store did not open: %s", words);
        _exit(1);
    }
    return live;
}

uint64_t rig_session(struct rig *rig)
{
    return random_next(&rig->random) | 1;
}

void rig_pause_us(int64_t length_us)
{
    struct timespec length = {.tv_sec = length_us / 1000000,
                              .tv_nsec = (long)(length_us % 1000000 * 1000)};
    (void)nanosleep(&length, NULL);
}

void rig_spin_us(int64_t length_us)
{
    int64_t now_us = rig_now_us(), end_us = now_us + length_us;
    while (now_us < end_us)
        now_us = rig_now_us();
}

int64_t rig_now_us(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        abort();
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t rig_unscheduled_us(pid_t pid)
{
    char path[64] = "/proc/thread-self/schedstat", words[64] = "";
    if (pid != 0)
        (void)snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, words, sizeof words - 1);
    (void)close(file);
    const char *second = length > 0 ? strchr(words, ' ') : NULL;
    return second != NULL ? (int64_t)(strtoull(second, NULL, 10) / 1000) : 0;
}
