/* SPDX-License-Identifier: Apache-2.0 */
/* See entra_cli.h. */
#include "io/entra_cli.h"

#include "io/host.h"
#include "io/program.h"

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
    AZ_MS = 20000, /* that it may take */
    COLLECT_MS = 5,
};

struct entra_cli {
    struct net *net;
    struct entra_cli_site site;
    pid_t child; /* 0: none runs; it leads a process group */
    struct net_watch pipe;
    struct net_timer late, collect;
    size_t length;
    char output[OUTPUT_MAX];
};

static void stop_listening(struct entra_cli *cli)
{
    if (cli->pipe.file < 0)
        return;
    (void)net_want(cli->net, &cli->pipe, 0);
    (void)close(cli->pipe.file);
    cli->pipe.file = -1;
}

static void kill_child(struct entra_cli *cli)
{
    if (cli->child <= 0)
        return;
    (void)kill(-cli->child, SIGKILL);
    (void)waitpid(cli->child, NULL, /* options= */ 0);
    cli->child = 0;
}

static void end(struct entra_cli *cli, const char *why)
{
    size_t length = cli->length;
    net_call_at(cli->net, &cli->late, NET_NEVER);
    net_call_at(cli->net, &cli->collect, NET_NEVER);
    stop_listening(cli);
    cli->child = 0;
    cli->site.done(cli->site.owner, why == NULL ? cli->output : NULL, length, why);
    explicit_bzero(cli->output, sizeof cli->output);
    cli->length = 0;
}

/* It closed its output; it ends soon, or is ended. */
static void on_collect(void *owner)
{
    struct entra_cli *cli = owner;
    int status = 0;
    pid_t ended = waitpid(cli->child, &status, WNOHANG);
    if (ended == 0) {
        net_call_at(cli->net, &cli->collect, host_boot_ms() + COLLECT_MS);
        return;
    }
    /* The caller's process may collect all its children; then the output decides. */
    bool taken = ended < 0 && errno == ECHILD;
    bool good = taken || (ended == cli->child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end(cli, good ? NULL : "az failed; is 'az login' done?");
}

static void on_late(void *owner)
{
    struct entra_cli *cli = owner;
    kill_child(cli);
    end(cli, "az did not end within 20 s");
}

static void on_output(void *owner, unsigned what)
{
    struct entra_cli *cli = owner;
    (void)what;
    ssize_t got = read(cli->pipe.file, cli->output + cli->length, OUTPUT_MAX - cli->length);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && (cli->length += (size_t)got) < OUTPUT_MAX)
        return;
    stop_listening(cli);
    on_collect(cli);
}

static int spawn(struct entra_cli *cli, const char *path, char *const *words, int output)
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
    int error = posix_spawn(&cli->child, path, &files, &how, words, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

/* posix_spawn() changes no word, but was declared before const. */
static char *as_word(const char *words)
{
    char *out;
    memcpy(&out, &words, sizeof out);
    return out;
}

bool entra_cli_start(struct entra_cli *cli, const char *resource, const char *tenant,
                     const char **why)
{
    char path[PATH_MAX];
    char *words[] = {as_word("az"),
                     as_word("account"),
                     as_word("get-access-token"),
                     as_word("--output"),
                     as_word("json"),
                     as_word("--resource"),
                     as_word(resource),
                     tenant != NULL ? as_word("--tenant") : NULL,
                     as_word(tenant),
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
    int error = spawn(cli, path, words, ends[1]);
    (void)close(ends[1]);
    cli->pipe = (struct net_watch){.file = ends[0], .ready = on_output, .owner = cli};
    if (error != 0) {
        cli->child = 0;
        stop_listening(cli);
        *why = "az cannot be started";
        return false;
    }
    cli->length = 0;
    net_call_at(cli->net, &cli->late, host_boot_ms() + AZ_MS);
    (void)net_want(cli->net, &cli->pipe, NET_READ);
    return true;
}

struct entra_cli *entra_cli_new(struct net *net, const struct entra_cli_site *site)
{
    struct entra_cli *cli = calloc(1, sizeof *cli);
    if (cli == NULL)
        return NULL;
    cli->net = net;
    cli->site = *site;
    cli->pipe.file = -1;
    cli->late = (struct net_timer){.at_ms = NET_NEVER, .due = on_late, .owner = cli};
    cli->collect = (struct net_timer){.at_ms = NET_NEVER, .due = on_collect, .owner = cli};
    return cli;
}

void entra_cli_free(struct entra_cli **cli)
{
    if (*cli == NULL)
        return;
    kill_child(*cli);
    stop_listening(*cli);
    net_call_at((*cli)->net, &(*cli)->late, NET_NEVER);
    net_call_at((*cli)->net, &(*cli)->collect, NET_NEVER);
    explicit_bzero((*cli)->output, sizeof(*cli)->output);
    free(*cli);
    *cli = NULL;
}
