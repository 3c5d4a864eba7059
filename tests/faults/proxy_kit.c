/* SPDX-License-Identifier: Apache-2.0 */
/* See proxy_kit.h. */
#include "proxy_kit.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool find_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    return slash != NULL && (size_t)snprintf(slash, size - (size_t)(slash - path), "/proxy") > 0;
}

static bool spawn(struct proxy_run *run, char **args, const int *in, const int *out)
{
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    bool runs = posix_spawnp(&run->pid, args[0], &actions, NULL, args, environ) == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    return runs;
}

bool proxy_start_program(struct proxy_run *run, char **args)
{
    int in[2], out[2];
    memset(run, 0, sizeof *run);
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    bool runs = spawn(run, args, in, out);
    (void)close(in[0]);
    (void)close(out[1]);
    run->commands = fdopen(in[1], "w");
    run->answers = fdopen(out[0], "r");
    if (!runs || fgets(run->last_word, sizeof run->last_word, run->answers) == NULL ||
        strncmp(run->last_word, "port ", strlen("port ")) != 0)
        return false;
    run->port = (uint16_t)strtoul(run->last_word + strlen("port "), NULL, 10);
    return run->port != 0;
}

bool proxy_start(struct proxy_run *run, uint16_t to, uint64_t seed, const char *control)
{
    char path[PATH_MAX], to_text[8], seed_text[24], place[100];
    char to_name[] = "--to", seed_name[] = "--seed", control_name[] = "--control";
    char *args[] = {path, to_name, to_text, seed_name, seed_text, control_name, place, NULL};
    memset(run, 0, sizeof *run);
    (void)snprintf(to_text, sizeof to_text, "%u", (unsigned)to);
    (void)snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    (void)snprintf(place, sizeof place, "%s", control != NULL ? control : "");
    if (control == NULL)
        args[5] = NULL;
    return find_program(path, sizeof path) && proxy_start_program(run, args);
}

bool proxy_say(struct proxy_run *run, const char *command)
{
    if (fprintf(run->commands, "%s\n", command) < 0 || fflush(run->commands) != 0)
        return false;
    while (fgets(run->last_word, sizeof run->last_word, run->answers) != NULL) {
        if (strncmp(run->last_word, "did cut", strlen("did cut")) == 0)
            run->did_cut++;
        else
            return strncmp(run->last_word, "ok ", strlen("ok ")) == 0;
    }
    return false;
}

uint64_t proxy_count(struct proxy_run *run, const char *name)
{
    char args[32];
    (void)snprintf(args, sizeof args, " %s=", name);
    const char *at = proxy_say(run, "counts") ? strstr(run->last_word, args) : NULL;
    return at != NULL ? strtoull(at + strlen(args), NULL, 10) : UINT64_MAX;
}

bool proxy_stop(struct proxy_run *run)
{
    int status = -1;
    if (run->commands != NULL)
        (void)fclose(run->commands);
    if (run->pid > 0)
        (void)waitpid(run->pid, &status, 0);
    if (run->answers != NULL)
        (void)fclose(run->answers);
    memset(run, 0, sizeof *run);
    return status == 0;
}
