/* SPDX-License-Identifier: Apache-2.0 */
/* See process_tree.h. */
#include "process/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MOST = 1 << 22 }; /* the kernel's limit */

struct process {
    pid_t pid, parent, group;
    char state;
    bool descendant;
};

struct processes {
    struct process *all;
    size_t count, room;
};

bool process_tree_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

bool process_tree_has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, /* id= */ 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool read_process(pid_t pid, struct process *out)
{
    char path[40], line[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, line, sizeof line - 1);
    (void)close(file);
    if (length <= 0)
        return false;
    line[length] = '\0';
    /* The name may contain any character, including ')'. */
    const char *rest = strrchr(line, ')');
    if (rest == NULL || rest[1] == '\0' || rest[2] == '\0')
        return false;
    char *end;
    long parent = strtol(rest + 3, &end, 10), group = strtol(end, NULL, 10);
    *out = (struct process){
        .pid = pid, .parent = (pid_t)parent, .group = (pid_t)group, .state = rest[2]};
    return true;
}

static void process_list_add(struct processes *list, const struct process *process)
{
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 512;
        struct process *all =
            room > PROCESSES_MOST ? NULL : reallocarray(list->all, room, sizeof *all);
        if (all == NULL)
            return;
        list->all = all;
        list->room = room;
    }
    list->all[list->count++] = *process;
}

static int is_pid(const struct dirent *entry)
{
    return isdigit((unsigned char)entry->d_name[0]);
}

/* Lists all processes. Incomplete when out of memory; callers repeat the scan anyway. */
static struct processes read_processes(void)
{
    struct processes list = {0};
    struct dirent **found = NULL;
    int count = scandirat(AT_FDCWD, "/proc", &found, is_pid, NULL);
    for (int i = 0; i < count; i++) {
        struct process process;
        if (read_process((pid_t)strtol(found[i]->d_name, NULL, 10), &process))
            process_list_add(&list, &process);
        free(found[i]);
    }
    free((void *)found);
    return list;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

static bool is_descendant(const struct processes *list, pid_t pid)
{
    struct process wanted = {.pid = pid};
    const struct process *found = bsearch(&wanted, list->all, list->count, sizeof wanted, by_pid);
    return found != NULL && found->descendant;
}

static void mark_descendants(struct processes *list, pid_t top)
{
    bool more = list->count > 0;
    if (more)
        qsort(list->all, list->count, sizeof list->all[0], by_pid);
    while (more) {
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process *process = &list->all[i];
            if (!process->descendant &&
                (process->parent == top || is_descendant(list, process->parent)))
                process->descendant = more = true;
        }
    }
}

static void kill_process(const struct process *process)
{
    struct process now;
    int pidfd = pidfd_open(process->pid, /* flags= */ 0);
    if (pidfd < 0)
        return;
    /* A reused pid has another parent. The same process keeps its parent, or is our child now. */
    if (read_process(process->pid, &now) &&
        (now.parent == process->parent || now.parent == getpid()))
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, /* flags= */ 0);
    (void)close(pidfd);
}

void process_tree_kill(void)
{
    struct processes list = read_processes();
    mark_descendants(&list, getpid());
    for (size_t i = 0; i < list.count; i++)
        if (list.all[i].descendant && list.all[i].state != 'Z')
            kill_process(&list.all[i]);
    free(list.all);
}

bool process_group_alive(pid_t group)
{
    if (kill(-group, 0) != 0 && errno == ESRCH)
        return false;
    struct processes list = read_processes();
    bool lives = false;
    for (size_t i = 0; i < list.count && !lives; i++) {
        const struct process *process = &list.all[i];
        lives = process->group == group && process->state != 'Z' && process->state != 'X';
    }
    free(list.all);
    return lives;
}
