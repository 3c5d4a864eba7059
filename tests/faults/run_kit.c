/* SPDX-License-Identifier: Apache-2.0 */
/* See run_kit.h. */
#include "run_kit.h"

#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 512, LINE = 1024, ARGS_MOST = 16 };
enum { STATE = 1, START = 20 }; /* fields of /proc/PID/stat, after the name */

static const char board_variable[] = "LEASEHOLD_TEST_BOARD";

/* The n-th field after the name, which may contain anything; the state is the first. */
static bool read_stat(pid_t pid, unsigned n, char *out, size_t size)
{
    char path[64], line[LINE];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (file >= 0)
        (void)close(file);
    if (length <= 0)
        return false;
    line[length] = '\0';
    char *rest = strrchr(line, ')'), *kept = NULL;
    const char *word = rest == NULL ? NULL : strtok_r(rest + 1, " ", &kept);
    for (; n > 1 && word != NULL; n--)
        word = strtok_r(NULL, " ", &kept);
    if (word == NULL)
        return false;
    (void)snprintf(out, size, "%s", word);
    return true;
}

static uint64_t start_time(pid_t pid)
{
    char args[32];
    return read_stat(pid, START, args, sizeof args) ? strtoull(args, NULL, 10) : 0;
}

void process_ref_set(struct process_ref *process_ref, pid_t pid)
{
    atomic_store(&process_ref->start_time, start_time(pid));
    atomic_store(&process_ref->pid, pid);
}

bool process_ref_alive(const struct process_ref *process_ref)
{
    char state[8];
    pid_t pid = atomic_load(&process_ref->pid);
    return pid != 0 && read_stat(pid, STATE, state, sizeof state) && state[0] != 'Z' &&
           state[0] != 'X' && start_time(pid) == atomic_load(&process_ref->start_time);
}

bool process_ref_ends_within(const struct process_ref *process_ref, int64_t limit_ms)
{
    int64_t end_ms = live_now_ms() + limit_ms;
    while (process_ref_alive(process_ref)) {
        if (live_now_ms() >= end_ms)
            return false;
        kit_collect();
        fixture_pause_us(500);
    }
    return true;
}

static char program_path[PATH_SIZE];

const char *kit_program(const char *own_name)
{
    char own[PATH_SIZE];
    (void)snprintf(own, sizeof own, "%s", own_name);
    (void)snprintf(program_path, sizeof program_path, "%.400s/../leasehold", dirname(own));
    return program_path;
}

static void *map_board(int file, size_t size)
{
    void *board =
        file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED)
        abort();
    (void)close(file);
    return board;
}

void *kit_board(const struct fixture *fixture, size_t size)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/board", fixture->folder);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) != 0 || setenv(board_variable, path, 1) != 0 ||
        setenv("LEASEHOLD_STORE", fixture->url, 1) != 0)
        abort();
    return map_board(file, size);
}

void *kit_find_board(size_t size)
{
    const char *path = getenv(board_variable);
    return map_board(path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1, size);
}

pid_t kit_start(const char *program, const char *const *args)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    if (getenv("LEASEHOLD_TEST_LOUD") == NULL)
        (void)dup2(nothing, STDERR_FILENO);
    char *copies[ARGS_MOST + 1] = {NULL};
    for (size_t i = 0; i < ARGS_MOST && args[i] != NULL; i++)
        copies[i] = strdup(args[i]);
    (void)execv(program, copies);
    _exit(127);
}

pid_t kit_supervisor(pid_t foreground)
{
    char path[80], line[LINE];
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)foreground,
                   (long)foreground);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (file >= 0)
        (void)close(file);
    if (length <= 0)
        return 0;
    line[length] = '\0';
    return (pid_t)strtol(line, NULL, 10);
}

/* The URL is in the environment; NULL: the store is in the fixture's folder. */
static const char *server(void)
{
    const char *url = getenv("LEASEHOLD_STORE");
    return url != NULL && strstr(url, "://") != NULL ? url : NULL;
}

static bool somebody_waits(const char *key)
{
    char command[2 * PATH_SIZE], reply[LINE] = "";
    (void)snprintf(command, sizeof command, "'%s' status '%s' --json", program_path, key);
    FILE *said = popen(command, "re"); /* NOLINT(cert-env33-c): both are the test's own words */
    if (said == NULL)
        return false;
    bool read = fgets(reply, sizeof reply, said) != NULL;
    (void)pclose(said);
    return read && strstr(reply, "\"waiters\":") != NULL && strstr(reply, "\"waiters\":0") == NULL;
}

bool kit_is_queued(pid_t supervisor, const char *key)
{
    char path[64], target[PATH_SIZE];
    if (server() != NULL)
        return somebody_waits(key);
    for (int file = 3; supervisor > 0 && file < 40; file++) {
        (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)supervisor, file);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = '\0';
        if (strstr(target, ".wake-") != NULL)
            return true;
    }
    return false;
}

static bool thread_is_traced(const char *status, pid_t tracer)
{
    char line[LINE], wanted[64];
    (void)snprintf(wanted, sizeof wanted, "TracerPid:\t%ld\n", (long)tracer);
    FILE *file = fopen(status, "re");
    bool traced = file == NULL; /* it has exited */
    while (file != NULL && !traced && fgets(line, sizeof line, file) != NULL)
        traced = strcmp(line, wanted) == 0;
    if (file != NULL)
        (void)fclose(file);
    return traced;
}

bool kit_is_traced(pid_t pid, pid_t tracer)
{
    char pattern[64];
    glob_t threads;
    (void)snprintf(pattern, sizeof pattern, "/proc/%ld/task/*/status", (long)pid);
    if (glob(pattern, GLOB_NOSORT, NULL, &threads) != 0)
        return false;
    bool traced = true;
    for (size_t i = 0; i < threads.gl_pathc && traced; i++)
        traced = thread_is_traced(threads.gl_pathv[i], tracer);
    globfree(&threads);
    return traced;
}

int kit_join(pid_t pid, int64_t limit_ms)
{
    int status = 0;
    int64_t end_ms = live_now_ms() + limit_ms;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (live_now_ms() >= end_ms)
            return -1;
        fixture_pause_us(500);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void kit_collect(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}
