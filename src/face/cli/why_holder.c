/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a holder is alive, as far as it can be known from here. The library knows the processes
 * that keep a lease of a file store; for other stores the default name of a holder, "host:pid",
 * leads to the process if it is of this host. Reads /proc, and assumes nothing about other hosts.
 */
#include "face/cli/why.h"

#include "wire/duration.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HOST_SIZE = 65, SLACK_MS = 2000 };

const char *why_liveness_name(enum why_liveness liveness)
{
    static const char *const names[] = {
        [WHY_UNKNOWN] = "unknown",
        [WHY_ALIVE] = "alive",
        [WHY_GONE] = "gone",
        [WHY_NO_PROCESS] = "no-process",
    };
    return names[liveness];
}

/* ---- processes ---- */

/* The bytes of /proc/PID/NAME, NUL-terminated; 0 if there are none. */
static size_t read_proc_file(int pid, const char *name, char *out, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, out, size - 1) : -1;
    if (file >= 0)
        (void)close(file);
    out[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static void read_command(struct why_process *process)
{
    size_t length =
        read_proc_file(process->pid, "cmdline", process->command, sizeof process->command);
    while (length > 0 && process->command[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++) {
        if (process->command[i] == '\0')
            process->command[i] = ' ';
    }
    text_clean(process->command, length);
}

/* The state is the third field of /proc/PID/stat, the parent the fourth, the start the 22nd, in
 * clock ticks since boot. The second is a name in parentheses, which may contain anything. */
static void why_read_process(int pid, struct why_process *out)
{
    char stat[1024];
    struct timespec now;
    *out = (struct why_process){.pid = pid, .started_ago_ms = -1};
    (void)read_proc_file(pid, "stat", stat, sizeof stat);
    const char *at = strrchr(stat, ')');
    if (at == NULL || at[1] == '\0')
        return;
    static const char own_name[] = "(leasehold)";
    const char *name = strchr(stat, '(');
    out->is_leasehold = name != NULL && strncmp(name, own_name, sizeof own_name - 1) == 0;
    out->state = at[2];
    out->parent = at[2] != '\0' ? (int)strtol(at + 3, NULL, 10) : 0;
    for (int field = 2; field < 22 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    long ticks = sysconf(_SC_CLK_TCK);
    if (at != NULL && ticks > 0 && clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
        int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
        out->started_ago_ms = now_ms - (int64_t)(strtoull(at, NULL, 10) * 1000 / (uint64_t)ticks);
    }
    read_command(out);
}

static bool process_runs(const struct why_process *process)
{
    return process->state != '\0' && process->state != 'Z' && process->state != 'X';
}

/* ---- liveness ---- */

static void set_liveness(struct why_holder *out, enum why_liveness liveness, const char *reason)
{
    out->liveness = liveness;
    (void)snprintf(out->reason, sizeof out->reason, "%s", reason);
}

/* The process that the others descend from: its own parent does not keep the lease. */
static bool is_root(const struct why_holder *holder, const struct why_process *process)
{
    for (size_t i = 0; i < holder->process_count; i++) {
        if (holder->processes[i].pid == process->parent)
            return false;
    }
    return true;
}

static const struct why_process *find_supervisor(const struct why_holder *holder,
                                                 const struct why_process *root)
{
    for (size_t i = 0; i < holder->process_count && root->is_leasehold; i++) {
        const struct why_process *process = &holder->processes[i];
        if (process->is_leasehold && process->parent == root->pid)
            return process;
    }
    return NULL;
}

/* In `run` the supervisor renews, a child of the process that the shell sees; otherwise the first
 * process does. Commands and other children only keep the lease open. */
static bool is_stalled(const struct why_holder *holder)
{
    size_t roots = 0;
    for (size_t i = 0; i < holder->process_count; i++) {
        const struct why_process *root = &holder->processes[i];
        if (!is_root(holder, root))
            continue;
        const struct why_process *supervisor = find_supervisor(holder, root);
        if ((supervisor != NULL ? supervisor : root)->state != 'T')
            return false;
        roots++;
    }
    return roots > 0;
}

static void judge_stopped(struct why_holder *out)
{
    out->stalled = is_stalled(out);
    set_liveness(out, WHY_ALIVE,
                 out->stalled ? "yes, but stopped, as marked above: it does not renew, and loses "
                                "the lock when the lease ends"
                              : "yes, but stopped, as marked above; another process of it renews "
                                "the lease");
}

/* A file store: `count` processes keep the lease. */
static void judge_kept(struct why_holder *out, const int *pids, size_t count)
{
    size_t stopped = 0;
    for (size_t i = 0; i < count; i++) {
        why_read_process(pids[i], &out->processes[i]);
        stopped += out->processes[i].state == 'T';
    }
    out->process_count = count;
    out->is_here = true;
    if (count == 0)
        set_liveness(out, WHY_ALIVE,
                     "yes, by the lock that the kernel keeps for it; its processes are not visible "
                     "to this user");
    else if (stopped > 0)
        judge_stopped(out);
    else
        set_liveness(out, WHY_ALIVE,
                     "yes: the kernel keeps the lease until these processes have ended");
}

/* Splits a default name, "host:pid". False for any other name. */
static bool read_name(const char *name, char *host, size_t size, int *out_pid)
{
    const char *colon = strrchr(name, ':');
    if (colon == NULL || colon == name || colon[1] < '1' || colon[1] > '9')
        return false;
    char *end = NULL;
    long pid = strtol(colon + 1, &end, 10);
    if (*end != '\0' || pid > 4194304 || (size_t)(colon - name) >= size)
        return false;
    memcpy(host, name, (size_t)(colon - name));
    host[colon - name] = '\0';
    *out_pid = (int)pid;
    return true;
}

/* The beginning is enough: a default name contains at most 64 bytes of it. */
static bool is_this_host(const char *host)
{
    char own[HOST_SIZE] = "";
    return gethostname(own, sizeof own - 1) == 0 && strcmp(own, host) == 0;
}

/* The supervisor of `run`, whose name contains the number of its parent. */
static void add_supervisor(struct why_holder *out)
{
    char path[64], children[256];
    const int pid = out->processes[0].pid;
    (void)snprintf(path, sizeof path, "task/%d/children", pid);
    (void)read_proc_file(pid, path, children, sizeof children);
    char *at = children, *end = children;
    for (long child = strtol(at, &end, 10); end != at; child = strtol(at, &end, 10)) {
        struct why_process *process = &out->processes[out->process_count];
        why_read_process((int)child, process);
        if (process->is_leasehold && out->processes[0].is_leasehold)
            out->process_count++;
        if (out->process_count == WHY_PROCESSES)
            return;
        at = end;
    }
}

/* The holder is not the process of this number here. A container may have the same host name, with
 * numbers of its own, so a recent renewal shows that the holder runs, or ran until just now. */
static void judge_missing(struct why_holder *out, const char *why)
{
    char ago[DURATION_SHOWN] = "";
    const struct lh_holder *holder = &out->holder;
    bool known = !holder->by_heartbeat && holder->renewed_ago_ms >= 0 && holder->ttl_ms >= 0;
    bool gone = known && holder->renewed_ago_ms >= holder->ttl_ms / 2;
    if (known)
        (void)duration_show(holder->renewed_ago_ms, ago);
    out->liveness = gone ? WHY_GONE : WHY_UNKNOWN;
    if (gone)
        (void)snprintf(out->reason, sizeof out->reason,
                       "no: %s, and the lease was not renewed for %s", why, ago);
    else if (holder->by_heartbeat)
        (void)snprintf(out->reason, sizeof out->reason,
                       "unknown: %s, but its last heartbeat still counts; the holder has ended "
                       "since, unless it runs in a container",
                       why);
    else
        (void)snprintf(out->reason, sizeof out->reason,
                       "unknown: %s, but the lease was renewed %s%s; the holder has ended since, "
                       "unless it runs in a container",
                       why, known ? ago : "at an unknown time", known ? " ago" : "");
    out->processes[0].command[0] = out->processes[0].state = '\0';
}

/* A process of this host, by the name of the holder. Another one may have its number now. */
static void judge_named(struct why_holder *out, int pid)
{
    struct why_process *process = &out->processes[0];
    why_read_process(pid, process);
    out->process_count = 1;
    bool hidden = process->state == '\0' && (kill(pid, 0) == 0 || errno != ESRCH);
    bool dated = process->started_ago_ms >= 0 && out->holder.since_ms >= 0;
    if (hidden)
        set_liveness(out, WHY_UNKNOWN,
                     "a process with this number exists, but it is not visible to this user");
    else if (!process_runs(process))
        judge_missing(out, "this host has no such process now");
    else if (!dated)
        set_liveness(out, WHY_UNKNOWN,
                     "a process with this number runs, but it is unknown whether it started before "
                     "the lock was acquired");
    else if (process->started_ago_ms + SLACK_MS < out->holder.since_ms)
        judge_missing(out, "the process with this number started after the lock was acquired");
    else if (process->state != 'T')
        set_liveness(out, WHY_ALIVE, "yes: the process runs");
    else {
        add_supervisor(out);
        judge_stopped(out);
    }
}

static void judge_by_name(struct why_holder *out)
{
    int pid = 0;
    char renewed[DURATION_SHOWN] = "";
    bool renews = out->holder.renewed_ago_ms >= 0 &&
                  out->holder.renewed_ago_ms + SLACK_MS < out->holder.since_ms;
    bool named = read_name(out->holder.name, out->host, sizeof out->host, &pid);
    out->is_here = named && is_this_host(out->host);
    if (out->is_here) {
        judge_named(out, pid);
        return;
    }
    if (named) {
        out->processes[0] = (struct why_process){.pid = pid, .started_ago_ms = -1};
        out->process_count = 1;
    }
    if (out->holder.by_heartbeat) {
        set_liveness(out, WHY_ALIVE, "yes, by its heartbeats");
        return;
    }
    if (renews)
        (void)duration_show(out->holder.renewed_ago_ms, renewed);
    (void)snprintf(out->reason, sizeof out->reason, "this cannot be known from here%s%s%s",
                   renews ? "; it was when it renewed the lease, " : "", renewed,
                   renews ? " ago" : "");
}

bool why_find_holder(const struct lh_view *view, size_t index, struct why_holder *out)
{
    int pids[WHY_PROCESSES];
    *out = (struct why_holder){.holder = LH_HOLDER_INIT};
    if (!lh_view_holder(view, index, &out->holder))
        return false;
    int count = lh_view_processes(view, index, pids, WHY_PROCESSES);
    if (out->holder.foreign) {
        set_liveness(out, WHY_UNKNOWN, "this cannot be known from here");
    } else if (count >= 0) {
        (void)gethostname(out->host, sizeof out->host - 1);
        judge_kept(out, pids, (size_t)count);
    } else if (!out->holder.bound) {
        set_liveness(out, WHY_NO_PROCESS,
                     "no process keeps it: it was acquired without one, and lasts until it is "
                     "released by its token, or for its TTL");
        (void)read_name(out->holder.name, out->host, sizeof out->host, &pids[0]);
    } else {
        judge_by_name(out);
    }
    return true;
}

void why_merge_holder(struct why_holder *all, const struct why_holder *found)
{
    struct lh_holder *holder = &all->holder;
    bool known = holder->takeover_in_ms >= 0 && found->holder.takeover_in_ms >= 0;
    bool alive = all->liveness == WHY_ALIVE || found->liveness == WHY_ALIVE;
    if (all->liveness != found->liveness)
        all->liveness = alive ? WHY_ALIVE : WHY_UNKNOWN;
    if (!known || found->holder.takeover_in_ms > holder->takeover_in_ms)
        holder->takeover_in_ms = known ? found->holder.takeover_in_ms : -1;
    holder->broken = holder->broken && found->holder.broken;
    holder->foreign = holder->foreign || found->holder.foreign;
    all->stalled = all->stalled || found->stalled;
    for (size_t i = 0; i < found->process_count && all->process_count < WHY_PROCESSES; i++)
        all->processes[all->process_count++] = found->processes[i];
}
