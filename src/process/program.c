/* SPDX-License-Identifier: Apache-2.0 */
/* See program.h. */
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int program_check(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int program_find(const char *name, char *out_path, size_t size)
{
    char path[PATH_MAX];
    const char *folders = getenv("PATH");
    int found = ENOENT;
    if (*name == '\0')
        return ENOENT;
    if (strchr(name, '/') != NULL) {
        if (strlen(name) >= size)
            return ENAMETOOLONG;
        found = program_check(name);
        if (found == 0)
            (void)snprintf(out_path, size, "%s", name);
        return found;
    }
    if (folders == NULL)
        folders = "/bin:/usr/bin";
    for (const char *end; folders != NULL; folders = *end != '\0' ? end + 1 : NULL) {
        end = strchrnul(folders, ':');
        int length = (int)(end - folders);
        int written =
            snprintf(path, sizeof path, "%.*s%s%s", length, folders, length > 0 ? "/" : "", name);
        if (written < 0 || (size_t)written >= sizeof path || (size_t)written >= size)
            continue;
        int error = program_check(path);
        if (error == 0) {
            (void)snprintf(out_path, size, "%s", path);
            return 0;
        }
        /* As in shells, a file that cannot be executed is reported only if no later one can, and
         * a folder that cannot be searched is skipped. */
        bool hidden = error == EACCES && faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) != 0;
        if (error != ENOENT && error != ENOTDIR && error != EISDIR && !hidden)
            found = error;
    }
    return found;
}

struct child_start {
    const struct program *program;
    pid_t parent;
    int error;
};

/*
 * Runs in the child, which shares the parent's memory but has its own stack: only system calls and
 * stores to `group` and `error`. After exec it never returns, so a sanitizer must not track it.
 */
__attribute__((no_sanitize("address"))) static int program_exec(void *argument)
{
    struct child_start *start = argument;
    const struct program *program = start->program;
    pid_t self = getpid();
    atomic_store(program->group, self);
    start->error = EOWNERDEAD;
    if (setpgid(/* pid= */ 0, /* pgid= */ 0) != 0)
        return 1;
    /* The parent may have died before the death signal was set. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != start->parent)
        return 1;
    if (program->out > 0 && dup2(program->out, STDOUT_FILENO) < 0)
        return 1;
    /* Last, because a Ctrl-Z between here and the exec would also stop the parent. */
    if (program->foreground_from > 0 && tcgetpgrp(program->terminal) == program->foreground_from)
        (void)tcsetpgrp(program->terminal, self);
    (void)sigprocmask(SIG_SETMASK, program->mask, NULL);
    start->error = 0;
    (void)execve(program->path, program->argv, program->environment);
    start->error = errno;
    return 1;
}

pid_t program_start(const struct program *program)
{
    enum { STACK = 16384 };
    _Alignas(16) char stack[STACK];
    struct child_start start = {.program = program, .parent = getpid()};
    /* Like vfork(): the parent sleeps until the exec, and the memory of its open store is not
     * copied. */
    pid_t child =
        clone(program_exec, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
    if (child < 0)
        return -errno;
    if (start.error == 0)
        return child;
    (void)waitpid(child, NULL, /* options= */ 0);
    return -start.error;
}
