/* SPDX-License-Identifier: Apache-2.0 */
/* See entra_cli.h. */
#include "http/entra_cli.h"

#include "process/host.h"
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OUTPUT_MAX = 64 * 1024,
    AZ_MS = 20000, /* timeout of az */
    REAP_MS = 5,
};

struct entra_cli {
    struct poller *poller;
    struct entra_cli_callbacks callbacks;
    pid_t child; /* 0: none runs; leads its own process group */
    struct poller_watch pipe;
    struct poller_timer timeout, reap;
    size_t length;
    char output[OUTPUT_MAX];
};

static void cli_close_pipe(struct entra_cli *cli)
{
    if (cli->pipe.file < 0)
        return;
    (void)poller_watch(cli->poller, &cli->pipe, 0);
    (void)close(cli->pipe.file);
    cli->pipe.file = -1;
}

static void cli_kill(struct entra_cli *cli)
{
    if (cli->child <= 0)
        return;
    (void)kill(-cli->child, SIGKILL);
    (void)waitpid(cli->child, NULL, /* options= */ 0);
    cli->child = 0;
}

static void cli_finish(struct entra_cli *cli, const char *why)
{
    size_t length = cli->length;
    poller_call_at(cli->poller, &cli->timeout, POLLER_NEVER);
    poller_call_at(cli->poller, &cli->reap, POLLER_NEVER);
    cli_close_pipe(cli);
    cli->child = 0;
    cli->callbacks.done(cli->callbacks.owner, why == NULL ? cli->output : NULL, length, why);
    explicit_bzero(cli->output, sizeof cli->output);
    cli->length = 0;
}

/* az has closed its output: polls until it exits, or until the timeout kills it. */
static void cli_reap(void *owner)
{
    struct entra_cli *cli = owner;
    int status = 0;
    pid_t ended = waitpid(cli->child, &status, WNOHANG);
    if (ended == 0) {
        poller_call_at(cli->poller, &cli->reap, host_boot_ms() + REAP_MS);
        return;
    }
    /* The application may reap all its children; then only the output counts. */
    bool taken = ended < 0 && errno == ECHILD;
    bool good = taken || (ended == cli->child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cli_finish(cli, good ? NULL : "az failed; is 'az login' done?");
}

static void cli_on_timeout(void *owner)
{
    struct entra_cli *cli = owner;
    cli_kill(cli);
    cli_finish(cli, "az did not end within 20 s");
}

static void cli_on_output(void *owner, unsigned what)
{
    struct entra_cli *cli = owner;
    (void)what;
    ssize_t got = read(cli->pipe.file, cli->output + cli->length, OUTPUT_MAX - cli->length);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && (cli->length += (size_t)got) < OUTPUT_MAX)
        return;
    cli_close_pipe(cli);
    cli_reap(cli);
}

static int cli_spawn(struct entra_cli *cli, const char *path, char *const *argv, int output)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
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
    int error = posix_spawn(&cli->child, path, &files, &how, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

/* posix_spawn() does not modify its arguments, but is declared without const. */
static char *as_arg(const char *arg)
{
    char *out;
    memcpy(&out, &arg, sizeof out);
    return out;
}

bool entra_cli_start(struct entra_cli *cli, const char *resource, const char *tenant,
                     const char **why)
{
    char path[PATH_MAX];
    char *argv[] = {as_arg("az"),
                    as_arg("account"),
                    as_arg("get-access-token"),
                    as_arg("--output"),
                    as_arg("json"),
                    as_arg("--resource"),
                    as_arg(resource),
                    tenant != NULL ? as_arg("--tenant") : NULL,
                    as_arg(tenant),
                    NULL};
    int ends[2];
    if (cli->child > 0)
        return true;
    if (program_find("az", path, sizeof path) != 0) {
        *why = "there is no az in PATH; install the Azure CLI";
        return false;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        *why = strerror(errno);
        return false;
    }
    int error = cli_spawn(cli, path, argv, ends[1]);
    (void)close(ends[1]);
    cli->pipe = (struct poller_watch){.file = ends[0], .ready = cli_on_output, .owner = cli};
    if (error != 0) {
        cli->child = 0;
        cli_close_pipe(cli);
        *why = "az cannot be started";
        return false;
    }
    cli->length = 0;
    poller_call_at(cli->poller, &cli->timeout, host_boot_ms() + AZ_MS);
    (void)poller_watch(cli->poller, &cli->pipe, POLLER_READ);
    return true;
}

struct entra_cli *entra_cli_new(struct poller *poller, const struct entra_cli_callbacks *callbacks)
{
    struct entra_cli *cli = calloc(1, sizeof *cli);
    if (cli == NULL)
        return NULL;
    cli->poller = poller;
    cli->callbacks = *callbacks;
    cli->pipe.file = -1;
    cli->timeout =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = cli_on_timeout, .owner = cli};
    cli->reap = (struct poller_timer){.at_ms = POLLER_NEVER, .due = cli_reap, .owner = cli};
    return cli;
}

void entra_cli_free(struct entra_cli **cli)
{
    if (*cli == NULL)
        return;
    cli_kill(*cli);
    cli_close_pipe(*cli);
    poller_call_at((*cli)->poller, &(*cli)->timeout, POLLER_NEVER);
    poller_call_at((*cli)->poller, &(*cli)->reap, POLLER_NEVER);
    explicit_bzero((*cli)->output, sizeof(*cli)->output);
    free(*cli);
    *cli = NULL;
}
