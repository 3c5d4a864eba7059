/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "run/child.h"

#include "base/check.h"
#include "process/process_tree.h"

#include <errno.h>
#include <sys/wait.h>

enum {
    DRAIN_MS = 250, /* grace period of processes that the command left behind */
    RETRY_MS = 20   /* poll interval after a kill: not every exit raises SIGCHLD here */
};

int child_find_program(const char *name, char *out_path, size_t size)
{
    return program_find(name, out_path, size);
}

int child_spawn(struct child *child, const struct program *program)
{
    pid_t pid = program_start(program);
    if (pid < 0)
        return pid;
    *child = (struct child){.state = CHILD_RUNNING, .group = pid, .due_ms = CHILD_NEVER};
    return 0;
}

void child_signal(const struct child *child, int signal)
{
    if (child->state != CHILD_DONE)
        (void)kill(-child->group, signal);
}

/* A stopped process handles SIGTERM only after SIGCONT. */
static void child_ask_to_end(const struct child *child)
{
    child_signal(child, SIGTERM);
    child_signal(child, SIGCONT);
}

void child_terminate(struct child *child, int64_t kill_at_ms)
{
    if (child->state == CHILD_TERMINATING && kill_at_ms < child->due_ms)
        child->due_ms = kill_at_ms; /* a second reason leaves less time */
    if (child->state >= CHILD_TERMINATING)
        return;
    child->state = CHILD_TERMINATING;
    child->due_ms = kill_at_ms;
    child_ask_to_end(child);
}

void child_kill(struct child *child, int64_t now_ms)
{
    if (child->state == CHILD_DONE)
        return;
    child->state = CHILD_KILLED;
    child->due_ms = now_ms + RETRY_MS;
    child_signal(child, SIGKILL);
    process_tree_kill();
}

/* Reaps all children that changed state; false if none is left. */
static bool child_reap_changed(struct child *child)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            return pid == 0 || errno != ECHILD;
        if (pid != child->group)
            continue;
        if (WIFSTOPPED(status))
            child->stopped_by = WSTOPSIG(status);
        else if (WIFCONTINUED(status))
            child->stopped_by = 0;
        else {
            child->reaped = true;
            child->wait_status = status;
        }
    }
}

void child_reap(struct child *child, int64_t now_ms)
{
    if (child->state == CHILD_DONE)
        return;
    bool any = child_reap_changed(child);
    ASSERT(any || child->reaped);
    if (!any) {
        child->state = CHILD_DONE;
        child->due_ms = CHILD_NEVER;
    } else if (child->state == CHILD_KILLED) {
        /* A process that was being reparented during the last kill is our child now. */
        child_kill(child, now_ms);
    } else if (child->reaped && !process_group_alive(child->group)) {
        /* Processes that left the group on purpose may survive a command that ended by itself. */
        if (child->state == CHILD_TERMINATING || WIFSIGNALED(child->wait_status)) {
            child_kill(child, now_ms);
        } else {
            child->state = CHILD_DONE;
            child->due_ms = CHILD_NEVER;
        }
    } else if (child->reaped && child->state == CHILD_RUNNING) {
        child->state = CHILD_DRAINING;
        child->due_ms = now_ms + DRAIN_MS;
        child_ask_to_end(child);
    }
}

void child_tick(struct child *child, int64_t now_ms)
{
    if (now_ms < child->due_ms)
        return;
    if (child->state == CHILD_DRAINING) {
        child_signal(child, SIGKILL);
        child->due_ms = now_ms + RETRY_MS;
    } else if (child->state == CHILD_TERMINATING) {
        child_kill(child, now_ms);
    }
    child_reap(child, now_ms);
}

int child_exit_status(const struct child *child)
{
    int status = child->wait_status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
