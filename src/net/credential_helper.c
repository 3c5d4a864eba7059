/* SPDX-License-Identifier: Apache-2.0 */
/* See credential_helper.h. */
#include "net/credential_helper.h"

#include "process/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OUTPUT_MAX = 64 * 1024,
    RUN_MS = 20000, /* timeout of the program */
    REAP_MS = 5,
};

static void helper_close_pipe(struct credential_helper *helper)
{
    if (helper->pipe.file < 0)
        return;
    (void)poller_watch(helper->poller, &helper->pipe, 0);
    (void)close(helper->pipe.file);
    helper->pipe.file = -1;
}

static void helper_kill(struct credential_helper *helper)
{
    if (helper->child <= 0)
        return;
    (void)kill(-helper->child, SIGKILL);
    (void)waitpid(helper->child, NULL, /* options= */ 0);
}

static void helper_reset(struct credential_helper *helper)
{
    poller_call_at(helper->poller, &helper->timeout, POLLER_NEVER);
    poller_call_at(helper->poller, &helper->reap, POLLER_NEVER);
    helper_close_pipe(helper);
    if (helper->output != NULL)
        explicit_bzero(helper->output, helper->length);
    free(helper->output);
    helper->output = NULL;
    helper->child = 0;
}

/* The callback may start the next run. */
static void helper_finish(struct credential_helper *helper, const char *failure)
{
    char *output = helper->output;
    size_t length = helper->length;
    helper->output = NULL;
    helper_reset(helper);
    helper->done(helper->owner, failure == NULL ? output : NULL, length, failure);
    explicit_bzero(output, length);
    free(output);
}

/* The program has closed its output: polls until it exits, or until the timeout kills it. */
static void helper_reap(void *owner)
{
    struct credential_helper *helper = owner;
    int status = 0;
    pid_t ended = waitpid(helper->child, &status, WNOHANG);
    if (ended == 0) {
        poller_call_at(helper->poller, &helper->reap, host_boot_ms() + REAP_MS);
        return;
    }
    /* The application may reap all its children; then only the output counts. */
    bool taken = ended < 0 && errno == ECHILD;
    bool good = taken || (ended == helper->child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    helper_finish(helper, good ? NULL : "failed");
}

static void helper_on_timeout(void *owner)
{
    struct credential_helper *helper = owner;
    helper_kill(helper);
    helper_finish(helper, "did not end within 20 s");
}

static void helper_on_output(void *owner, unsigned what)
{
    struct credential_helper *helper = owner;
    (void)what;
    ssize_t got =
        read(helper->pipe.file, helper->output + helper->length, OUTPUT_MAX - helper->length);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && (helper->length += (size_t)got) < OUTPUT_MAX)
        return;
    helper_close_pipe(helper);
    helper_reap(helper);
}

void credential_helper_init(struct credential_helper *helper, struct poller *poller,
                            void (*done)(void *owner, const char *output, size_t length,
                                         const char *failure),
                            void *owner)
{
    *helper = (struct credential_helper){
        .poller = poller,
        .done = done,
        .owner = owner,
        .pipe = {.file = -1, .ready = helper_on_output, .owner = helper},
        .timeout = {.at_ms = POLLER_NEVER, .due = helper_on_timeout, .owner = helper},
        .reap = {.at_ms = POLLER_NEVER, .due = helper_reap, .owner = helper}};
}

void credential_helper_done(struct credential_helper *helper)
{
    helper_kill(helper);
    helper_reset(helper);
}

static int helper_spawn(struct credential_helper *helper, const char *const *argv,
                        char *const *environment, int output)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    char *const *arguments;
    memcpy(&arguments, &argv, sizeof argv); /* not changed, but declared without const */
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &all);
    (void)posix_spawnattr_setpgroup(&how, 0);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(&helper->child, argv[0], &files, &how, arguments, environment);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

int credential_helper_start(struct credential_helper *helper, const char *const *argv,
                            char *const *environment)
{
    int ends[2];
    helper->length = 0;
    helper->output = malloc(OUTPUT_MAX);
    if (helper->output == NULL)
        return ENOMEM;
    int error = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno;
    if (error == 0) {
        helper->pipe.file = ends[0];
        error = helper_spawn(helper, argv, environment, ends[1]);
        (void)close(ends[1]);
    }
    if (error != 0) {
        helper_reset(helper);
        return error;
    }
    poller_call_at(helper->poller, &helper->timeout, host_boot_ms() + RUN_MS);
    (void)poller_watch(helper->poller, &helper->pipe, POLLER_READ);
    return 0;
}
