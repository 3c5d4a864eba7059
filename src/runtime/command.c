/* SPDX-License-Identifier: Apache-2.0 */
/* See command.h. */
#include "runtime/command.h"

#include "base/check.h"
#include "io/family.h"

#include <errno.h>
#include <sys/wait.h>

enum {
    TIDY_MS = 250, /* what the command left behind is asked for so long before it is killed */
    AGAIN_MS = 20  /* who was killed is looked for so often: not every end is told to us */
};

int command_start(struct command *command, const struct program *program)
{
    pid_t pid = program_start(program);
    if (pid < 0)
        return pid;
    *command = (struct command){.state = COMMAND_RUNNING, .group = pid, .due_ms = COMMAND_NEVER};
    return 0;
}

void command_pass(const struct command *command, int signal)
{
    if (command->state != COMMAND_OVER)
        (void)kill(-command->group, signal);
}

/* One that is stopped hears it only when it goes on. */
static void ask_to_end(const struct command *command)
{
    command_pass(command, SIGTERM);
    command_pass(command, SIGCONT);
}

void command_end(struct command *command, int64_t kill_at_ms)
{
    if (command->state >= COMMAND_ENDING)
        return;
    command->state = COMMAND_ENDING;
    command->due_ms = kill_at_ms;
    ask_to_end(command);
}

void command_kill(struct command *command, int64_t now_ms)
{
    if (command->state == COMMAND_OVER)
        return;
    command->state = COMMAND_KILLED;
    command->due_ms = now_ms + AGAIN_MS;
    command_pass(command, SIGKILL);
    family_kill();
}

/* Takes note of all children that changed; false when there are none left. */
static bool collect(struct command *command)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            return pid == 0 || errno != ECHILD;
        if (pid != command->group)
            continue;
        if (WIFSTOPPED(status))
            command->stopped_by = WSTOPSIG(status);
        else if (WIFCONTINUED(status))
            command->stopped_by = 0;
        else {
            command->collected = true;
            command->wait_status = status;
        }
    }
}

void command_look(struct command *command, int64_t now_ms)
{
    if (command->state == COMMAND_OVER)
        return;
    bool any = collect(command);
    ASSERT(any || command->collected);
    if (!any) {
        command->state = COMMAND_OVER;
        command->due_ms = COMMAND_NEVER;
    } else if (command->state == COMMAND_KILLED) {
        /* Whoever was between two parents a moment ago is ours now. */
        command_kill(command, now_ms);
    } else if (command->collected && !family_group_lives(command->group)) {
        /* What has left the group on purpose may stay, unless all of it is to end. */
        if (command->state == COMMAND_ENDING)
            command_kill(command, now_ms);
        else
            command->state = COMMAND_OVER;
    } else if (command->collected && command->state == COMMAND_RUNNING) {
        command->state = COMMAND_TIDYING;
        command->due_ms = now_ms + TIDY_MS;
        ask_to_end(command);
    }
}

void command_tick(struct command *command, int64_t now_ms)
{
    if (now_ms < command->due_ms)
        return;
    if (command->state == COMMAND_TIDYING) {
        command_pass(command, SIGKILL);
        command->due_ms = now_ms + AGAIN_MS;
    } else if (command->state == COMMAND_ENDING) {
        command_kill(command, now_ms);
    }
    command_look(command, now_ms);
}

int command_exit_status(const struct command *command)
{
    int status = command->wait_status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
