/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "runtime/job.h"

#include "base/check.h"
#include "io/family.h"

#include <errno.h>
#include <sys/wait.h>

enum {
    TIDY_MS = 250, /* what the command left behind is asked for so long before it is killed */
    AGAIN_MS = 20  /* who was killed is looked for so often: not every end is told to us */
};

int job_start(struct job *job, const struct program *program)
{
    pid_t pid = program_start(program);
    if (pid < 0)
        return pid;
    *job = (struct job){.state = JOB_RUNNING, .group = pid, .due_ms = JOB_NEVER};
    return 0;
}

void job_pass(const struct job *job, int signal)
{
    if (job->state != JOB_OVER)
        (void)kill(-job->group, signal);
}

/* One that is stopped hears it only when it goes on. */
static void ask_to_end(const struct job *job)
{
    job_pass(job, SIGTERM);
    job_pass(job, SIGCONT);
}

void job_end(struct job *job, int64_t kill_at_ms)
{
    if (job->state >= JOB_ENDING)
        return;
    job->state = JOB_ENDING;
    job->due_ms = kill_at_ms;
    ask_to_end(job);
}

void job_kill(struct job *job, int64_t now_ms)
{
    if (job->state == JOB_OVER)
        return;
    job->state = JOB_KILLED;
    job->due_ms = now_ms + AGAIN_MS;
    job_pass(job, SIGKILL);
    family_kill();
}

/* Takes note of all children that changed; false when there are none left. */
static bool collect(struct job *job)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            return pid == 0 || errno != ECHILD;
        if (pid != job->group)
            continue;
        if (WIFSTOPPED(status))
            job->stopped_by = WSTOPSIG(status);
        else if (WIFCONTINUED(status))
            job->stopped_by = 0;
        else {
            job->collected = true;
            job->wait_status = status;
        }
    }
}

void job_look(struct job *job, int64_t now_ms)
{
    if (job->state == JOB_OVER)
        return;
    bool any = collect(job);
    ASSERT(any || job->collected);
    if (!any) {
        job->state = JOB_OVER;
        job->due_ms = JOB_NEVER;
    } else if (job->state == JOB_KILLED) {
        /* Whoever was between two parents a moment ago is ours now. */
        job_kill(job, now_ms);
    } else if (job->collected && !family_group_lives(job->group)) {
        /* What has left the group on purpose may stay when the command came to its own end. */
        if (job->state == JOB_ENDING || WIFSIGNALED(job->wait_status)) {
            job_kill(job, now_ms);
        } else {
            job->state = JOB_OVER;
            job->due_ms = JOB_NEVER;
        }
    } else if (job->collected && job->state == JOB_RUNNING) {
        job->state = JOB_TIDYING;
        job->due_ms = now_ms + TIDY_MS;
        ask_to_end(job);
    }
}

void job_tick(struct job *job, int64_t now_ms)
{
    if (now_ms < job->due_ms)
        return;
    if (job->state == JOB_TIDYING) {
        job_pass(job, SIGKILL);
        job->due_ms = now_ms + AGAIN_MS;
    } else if (job->state == JOB_ENDING) {
        job_kill(job, now_ms);
    }
    job_look(job, now_ms);
}

int job_exit_status(const struct job *job)
{
    int status = job->wait_status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
