/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a server's connections, without a store: bench_streams idle [CONNECTIONS], the memory
 * of connections that wait; bench_streams echo [CONNECTIONS TURNS], requests that a child process
 * sends, one per connection and turn. Only the server is counted by `strace -c`; parse: nanoseconds
 * of the RESP parser.
 */
#include "net/listener.h"
#include "net/stream.h"
#include "process/host.h"
#include "wire/resp_command.h"
#include "wire/resp_reply.h"

#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECTIONS_MOST = 20000, IN_MOST = 1024 * 1024, PARSES = 5000000 };

struct bench_connection {
    struct stream *stream;
    int peer;
};

static const char request[] = "*4\r\n$12\r\nLOCK.ACQUIRE\r\n$8\r\norders:7\r\n$8\r\nworker-1\r\n"
                              "$5\r\n30000\r\n";
static const struct resp_command_limits limits = {.bulk_max = 65536, .total_max = IN_MOST};

static struct poller *poller;
static struct bench_connection connections[CONNECTIONS_MOST];
static size_t accepted, served, ended;

static void bench_check(bool fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(1);
}

static size_t bench_on_bytes(void *owner, const char *bytes, size_t length)
{
    const struct bench_connection *connection = owner;
    struct resp_command command;
    size_t at = 0, used = 0;
    const char *wrong = NULL;
    while (at < length && resp_command_feed(bytes + at, length - at, &limits, &command, &used,
                                            &wrong) == RESP_WHOLE) {
        char room[128];
        struct resp_reply reply;
        resp_reply_init(&reply, room, sizeof room, /* protocol= */ 2);
        resp_reply_bytes(&reply, command.args[1].text, command.args[1].length);
        stream_write(connection->stream, reply.bytes, reply.length);
        at += used;
        served++;
    }
    return at;
}

static void bench_on_ended(void *owner, enum stream_end end, const char *why)
{
    struct bench_connection *connection = owner;
    (void)end;
    (void)why;
    ended++;
    stream_free(&connection->stream);
}

static void bench_adopt(struct bench_connection *connection, int file)
{
    connection->stream = stream_adopt(poller, file, file, "127.0.0.1",
                                      &(struct stream_callbacks){.bytes = bench_on_bytes,
                                                                 .ended = bench_on_ended,
                                                                 .owner = connection,
                                                                 .in_max = IN_MOST,
                                                                 .out_max = IN_MOST});
    bench_check(connection->stream != NULL, "stream_adopt");
}

static void bench_on_accepted(void *owner, int file, const struct listener_peer *peer)
{
    (void)owner;
    (void)peer;
    bench_adopt(&connections[accepted++], file);
}

static void bench_send(size_t count)
{
    for (size_t i = 0; i < count; i++)
        bench_check(write(connections[i].peer, request, sizeof request - 1) > 0, "write");
}

static void bench_receive(size_t count)
{
    char reply[256];
    for (size_t i = 0; i < count; i++)
        bench_check(read(connections[i].peer, reply, sizeof reply) > 0, "read");
}

/* The client: connects, and sends a request each once `go` ends. */
static void bench_run_peers(uint16_t port, size_t count, const int *go)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char byte;
    (void)close(go[1]);
    for (size_t i = 0; i < count; i++) {
        connections[i].peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bench_check(connect(connections[i].peer, (struct sockaddr *)&address, sizeof address) == 0,
                    "connect");
    }
    bench_check(read(go[0], &byte, 1) == 0, "read");
    bench_send(count);
    bench_receive(count);
    _exit(0);
}

static void bench_step_until(const size_t *counter, size_t count)
{
    while (*counter < count) {
        poller_wait(poller, /* most_ms= */ -1);
        poller_step(poller);
    }
}

static void bench_idle(size_t count)
{
    char message[256];
    struct text why;
    int go[2];
    text_init(&why, message, sizeof message);
    struct listener *listener = listener_open_tcp(
        poller, "127.0.0.1:0", &(struct listener_callbacks){.accepted = bench_on_accepted}, &why);
    bench_check(listener != NULL && pipe(go) == 0, message);
    pid_t child = fork();
    bench_check(child >= 0, "fork");
    if (child == 0)
        bench_run_peers(listener_port(listener), count, go);
    (void)close(go[0]);
    size_t before = mallinfo2().uordblks;
    bench_step_until(&accepted, count);
    size_t fresh = mallinfo2().uordblks;
    (void)close(go[1]);
    bench_step_until(&served, count);
    size_t after = mallinfo2().uordblks;
    printf("%zu connections: %zu bytes each, %zu after a request\n", count,
           (fresh - before) / count, (after - before - POLLER_SCRATCH) / count);
    bench_step_until(&ended, count);
    bench_check(waitpid(child, NULL, 0) == child, "waitpid");
    listener_free(&listener);
}

static void bench_echo(size_t count, size_t turns)
{
    for (size_t i = 0; i < count; i++) {
        int pair[2];
        bench_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
        connections[i].peer = pair[1];
        bench_adopt(&connections[i], pair[0]);
    }
    pid_t child = fork();
    bench_check(child >= 0, "fork");
    if (child == 0) {
        for (size_t i = 0; i < turns; i++) {
            bench_send(count);
            bench_receive(count);
        }
        for (size_t i = 0; i < count; i++) /* the child's copies of the streams stay open */
            (void)shutdown(connections[i].peer, SHUT_RDWR);
        _exit(0);
    }
    for (size_t i = 0; i < count; i++)
        (void)close(connections[i].peer);
    int64_t start_us = host_boot_us();
    bench_step_until(&ended, count);
    int64_t took_us = host_boot_us() - start_us;
    bench_check(waitpid(child, NULL, 0) == child, "waitpid");
    printf("%zu requests over %zu connections: %.0f a second\n", served, count,
           (double)served * 1e6 / (double)(took_us > 0 ? took_us : 1));
}

static void bench_parse(void)
{
    struct resp_command command;
    size_t used = 0, sum = 0;
    const char *wrong = NULL;
    int64_t start_us = host_boot_us();
    for (size_t i = 0; i < PARSES; i++) {
        (void)resp_command_feed(request, sizeof request - 1, &limits, &command, &used, &wrong);
        sum += used + command.count;
    }
    int64_t took_us = host_boot_us() - start_us;
    bench_check(sum == PARSES * (sizeof request - 1 + 4), "the parser");
    printf("%.1f ns for each command of %zu bytes\n", (double)took_us * 1e3 / PARSES,
           sizeof request - 1);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    size_t turns = argc > 3 ? strtoul(argv[3], NULL, 10) : 2000;
    poller = poller_new();
    if (poller == NULL || count > CONNECTIONS_MOST)
        return 2;
    if (strcmp(mode, "idle") == 0)
        bench_idle(count > 0 ? count : 10000);
    else if (strcmp(mode, "echo") == 0)
        bench_echo(count > 0 ? count : 64, turns);
    else if (strcmp(mode, "parse") == 0)
        bench_parse();
    else
        (void)fputs("usage: bench_streams idle|echo|parse [CONNECTIONS [TURNS]]\n", stderr);
    poller_free(&poller);
    return 0;
}
