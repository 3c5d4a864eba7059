/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with many connections, waiters and locks: its memory per unit, from the differences of
 * its resident set, and the time of a start with many locks in a file. daemon_scale FILE_URL
 * PROGRAM CONNECTIONS LOCKS. Prints cases; the limits are about twice what is usual.
 */
#include "load_peer.h"
#include "rounds.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIPELINE = 64,
    CONNECTION_BYTES_MOST = 4096,
    WAITER_BYTES_MOST = 8192,
    LOCK_BYTES_MOST = 2048,
    START_SECONDS_MOST = 60, /* the aim is 3, on a machine without other load */
};

static const char *program;
static struct load_peer *peers;
static pid_t scale_pid;
static uint16_t scale_port;
static unsigned cases, failures;

static void scale_tell(bool good, const char *what)
{
    failures += good ? 0 : 1;
    printf("%s %u - %s\n", good ? "ok" : "not ok", ++cases, what);
    (void)fflush(stdout);
}

/* Starts the daemon; returns the seconds until it listens. */
static double scale_start(const char *store)
{
    int out[2];
    char line[256] = "";
    load_check(pipe(out) == 0, "pipe");
    double since = rounds_seconds();
    scale_pid = fork();
    load_check(scale_pid >= 0, "fork");
    if (scale_pid == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        (void)close(out[0]);
        (void)close(out[1]);
        (void)execl(program, program, "serve", "--store", store, "--listen", "127.0.0.1:0",
                    "--http", "off", "--unix", "off", "--max-connections", "20000", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    FILE *lines = fdopen(out[0], "r");
    load_check(lines != NULL && fgets(line, sizeof line, lines) != NULL, "no address");
    double took = rounds_seconds() - since;
    (void)fclose(lines);
    const char *colon = strrchr(line, ':');
    load_check(colon != NULL, line);
    scale_port = (uint16_t)strtoul(colon + 1, NULL, 10);
    return took;
}

static void scale_stop(void)
{
    int status = 0;
    (void)kill(scale_pid, SIGTERM);
    load_check(waitpid(scale_pid, &status, 0) == scale_pid, "waitpid");
    load_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon failed");
}

/* Bytes of the resident set. */
static double scale_resident(void)
{
    char path[64], line[256];
    double kilobytes = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)scale_pid);
    FILE *file = fopen(path, "r");
    load_check(file != NULL, path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kilobytes = strtod(line + 6, NULL);
    }
    (void)fclose(file);
    return kilobytes * 1024;
}

static void scale_judge(const char *what, size_t count, double before, double most)
{
    char line[128];
    double bytes = (scale_resident() - before) / (double)count;
    (void)snprintf(line, sizeof line, "%zu %s: %.0f bytes each, at most %.0f", count, what, bytes,
                   most);
    scale_tell(bytes > 0 && bytes <= most, line);
}

/* New locks with a long TTL, over one connection. */
static void scale_hold(size_t locks)
{
    static char bytes[PIPELINE * 128 + LOAD_COMMAND_MAX];
    struct load_reply reply;
    struct load_peer *peer = rounds_memory(sizeof *peer);
    load_open(peer, scale_port);
    for (size_t from = 0; from < locks; from += PIPELINE) {
        size_t length = 0, end = from + PIPELINE < locks ? from + PIPELINE : locks;
        for (size_t i = from; i < end; i++)
            length += load_command(bytes + length, "LOCK.ACQUIRE lock:%zu holder 3600000", i);
        load_send(peer, bytes, length);
        for (size_t i = from; i < end; i++) {
            load_await(peer, &reply);
            load_check(reply.ok, reply.outcome);
        }
    }
    load_close(peer);
    free(peer);
}

static bool scale_holds(size_t number)
{
    struct load_reply reply;
    struct load_peer *peer = rounds_memory(sizeof *peer);
    load_open(peer, scale_port);
    load_call(peer, &reply, "LOCK.ACQUIRE lock:%zu other 30000", number);
    load_close(peer);
    free(peer);
    return strcmp(reply.outcome, "busy") == 0;
}

/* All of them idle, then all waiting for one key, then a part of them served in their order. */
static void scale_connections(size_t count)
{
    enum { TURNS = 200 };
    char bytes[LOAD_COMMAND_MAX];
    struct load_reply reply;
    double before = scale_resident();
    for (size_t i = 0; i < count; i++)
        load_open(&peers[i], scale_port);
    load_call(&peers[count - 1], &reply, "PING"); /* all others were accepted before */
    scale_judge("idle connections", count, before, CONNECTION_BYTES_MOST);
    load_call(&peers[0], &reply, "LOCK.ACQUIRE queue holder 3600000");
    load_check(reply.ok, reply.outcome);
    uint64_t token = reply.token;
    before = scale_resident();
    for (size_t i = 1; i < count; i++)
        load_send(&peers[i], bytes,
                  load_command(bytes, "LOCK.ACQUIRE queue holder-%zu 3600000 WAIT 3600000", i));
    load_call(&peers[0], &reply, "PING");
    scale_judge("waiters on one key", count - 1, before, WAITER_BYTES_MOST);
    bool good = true;
    for (size_t i = 0; i < TURNS && i + 1 < count; i++) {
        load_call(&peers[i], &reply, "LOCK.RELEASE queue %" PRIu64, token);
        good = good && reply.ok;
        load_await(&peers[i + 1], &reply);
        good = good && reply.ok && reply.token > token;
        token = reply.token;
    }
    scale_tell(good, "waiters are served in the order of their arrival");
    for (size_t i = 0; i < count; i++)
        load_close(&peers[i]);
}

int main(int count, char **words)
{
    char line[128];
    load_check(count == 5, "usage: daemon_scale FILE_URL PROGRAM CONNECTIONS LOCKS");
    const char *store = words[1];
    program = words[2];
    size_t connections = strtoul(words[3], NULL, 10), locks = strtoul(words[4], NULL, 10);
    if (!load_allow_files(connections + 64)) {
        printf("not ok 1 - the hard limit of open files is below %zu; raise it: ulimit -Hn\n1..1\n",
               connections + 64);
        return 1;
    }
    peers = rounds_memory(connections * sizeof *peers);
    (void)scale_start("memory:");
    double before = scale_resident();
    scale_hold(locks);
    scale_judge("locks in memory", locks, before, LOCK_BYTES_MOST);
    scale_connections(connections);
    scale_stop();
    (void)scale_start(store);
    scale_hold(locks);
    scale_stop();
    double took = scale_start(store), since = rounds_seconds();
    bool held = scale_holds(0); /* the first request reads what the start did not */
    took += rounds_seconds() - since;
    (void)snprintf(line, sizeof line,
                   "a start with %zu locks in a file, and the first reply: %.2f s, at most %d",
                   locks, took, START_SECONDS_MOST);
    scale_tell(took <= START_SECONDS_MOST, line);
    scale_tell(held && scale_holds(locks - 1), "the locks are held after it");
    scale_stop();
    printf("1..%u\n", cases);
    free(peers);
    return failures == 0 ? 0 : 1;
}
