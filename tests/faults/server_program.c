/* SPDX-License-Identifier: Apache-2.0 */
/* See server_program.h. */
#include "server_program.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOLDER_SIZE = 160 };

/* The process that outlives us, and the pipe whose end tells it that we are dead. */
static pid_t guard;
static int guard_pipe[2] = {-1, -1};

static _Noreturn void server_exec(const struct fixture *fixture, const char *verb,
                                  const char *argument)
{
    char folder[FOLDER_SIZE];
    (void)snprintf(folder, sizeof folder, "%.127s/server", fixture->folder);
    (void)execl(fixture->server, fixture->server, verb, folder, argument, NULL);
    _exit(127);
}

/* Runs the program. `out` becomes what it prints, without the end of the line. */
static bool server_call(const struct fixture *fixture, const char *verb, const char *argument,
                        char *out, size_t size)
{
    int output[2], status = -1;
    size_t length = 0;
    if (pipe2(output, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(output[1], STDOUT_FILENO);
        server_exec(fixture, verb, argument);
    }
    (void)close(output[1]);
    for (ssize_t count = 1; pid > 0 && count > 0 && length + 1 < size;) {
        count = read(output[0], out + length, size - 1 - length);
        length += count > 0 ? (size_t)count : 0;
    }
    (void)close(output[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    out[length] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool server_does(const struct fixture *fixture, const char *verb)
{
    char output[256];
    return server_call(fixture, verb, NULL, output, sizeof output);
}

/* Sets the variables before the URL, and leaves the URL. */
static bool server_set_variables(char *text)
{
    for (char *space; (space = strchr(text, ' ')) != NULL;) {
        char *equals = strchr(text, '=');
        if (equals == NULL || equals > space)
            return false;
        *equals = *space = '\0';
        if (setenv(text, equals + 1, /* overwrite= */ 1) != 0)
            return false;
        (void)memmove(text, space + 1, strlen(space + 1) + 1);
    }
    return true;
}

static bool guard_start(const struct fixture *fixture)
{
    char byte;
    if (pipe2(guard_pipe, O_CLOEXEC) != 0 || (guard = fork()) < 0)
        return false;
    if (guard > 0)
        return close(guard_pipe[0]) == 0;
    (void)close(guard_pipe[1]);
    while (read(guard_pipe[0], &byte, 1) > 0) {
    }
    server_exec(fixture, "kill", NULL);
}

bool server_start(struct fixture *fixture)
{
    if (guard == 0 && !guard_start(fixture))
        return false;
    if (!server_does(fixture, "start") ||
        !server_call(fixture, "url", NULL, fixture->url, sizeof fixture->url) ||
        !server_set_variables(fixture->url))
        return false;
    fixture->driver = store_find(fixture->url);
    fixture->given = true;
    return fixture->driver != NULL;
}

bool server_kill(const struct fixture *fixture)
{
    return server_does(fixture, "kill");
}

bool server_freeze(const struct fixture *fixture)
{
    return server_does(fixture, "freeze");
}

bool server_thaw(const struct fixture *fixture)
{
    return server_does(fixture, "thaw");
}

bool server_stop(struct fixture *fixture)
{
    int status = -1;
    if (guard == 0)
        return true;
    bool stopped = server_does(fixture, "stop");
    (void)close(guard_pipe[1]);
    (void)waitpid(guard, &status, 0);
    guard = 0;
    return stopped && status == 0;
}

uint16_t server_port(const struct fixture *fixture)
{
    char text[32];
    return server_call(fixture, "port", NULL, text, sizeof text) ? (uint16_t)strtoul(text, NULL, 10)
                                                                 : 0;
}

bool server_url(const struct fixture *fixture, uint16_t port, char *out, size_t size)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%" PRIu16, port);
    return server_call(fixture, "url", text, out, size) && server_set_variables(out);
}
