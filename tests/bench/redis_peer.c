/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_peer.h. */
#include "redis_peer.h"

#include "rounds.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EVENTS = 64 };

static const char taken[] = "+OK\r\n", given_back[] = ":1\r\n", nothing[] = "$-1\r\n";
static const char load_script[] =
    "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$93\r\n"
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else "
    "return 0 end\r\n";

struct client {
    int file;
    bool holds; /* or requests the lock; otherwise releases it */
    struct redis_commands commands;
};

struct redis_peer {
    int events;
    size_t count;
    struct client clients[];
};

static int connect_to_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path)
        rounds_fail(path, "the path is too long for a socket");
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (file < 0 || connect(file, (struct sockaddr *)&address, sizeof address) != 0)
        rounds_fail(path, strerror(errno));
    return file;
}

static int connect_to_port(const char *port)
{
    const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0 || connect(file, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        rounds_fail(port, strerror(errno));
    return file;
}

int redis_peer_connect(const char *server)
{
    return strchr(server, '/') != NULL ? connect_to_path(server) : connect_to_port(server);
}

static void receive(int file, char *reply, size_t size)
{
    ssize_t got = read(file, reply, size - 1);
    if (got <= 0)
        rounds_fail("redis", "no answer");
    reply[got] = '\0';
}

bool redis_peer_call(int file, const char *command, size_t length, const char *expected)
{
    char reply[64];
    if (write(file, command, length) != (ssize_t)length)
        rounds_fail("redis", strerror(errno));
    receive(file, reply, sizeof reply);
    if (strcmp(reply, expected) != 0 && strcmp(reply, nothing) != 0)
        rounds_fail("redis answered", reply);
    return strcmp(reply, expected) == 0;
}

/* Keys of 32 bytes and a value that identifies the holder, as in the usual libraries. */
void redis_peer_commands(int file, size_t key, size_t value, bool compares,
                         struct redis_commands *out)
{
    char sha[64];
    out->set_length =
        (size_t)snprintf(out->set, sizeof out->set,
                         "*6\r\n$3\r\nSET\r\n$32\r\nkey-%028zu\r\n$16\r\n%016zx\r\n$2\r\nNX\r\n"
                         "$2\r\nPX\r\n$5\r\n30000\r\n",
                         key, value);
    if (!compares) {
        out->free_length = (size_t)snprintf(out->free, sizeof out->free,
                                            "*2\r\n$3\r\nDEL\r\n$32\r\nkey-%028zu\r\n", key);
        return;
    }
    if (write(file, load_script, sizeof load_script - 1) != (ssize_t)sizeof load_script - 1)
        rounds_fail("redis", strerror(errno));
    receive(file, sha, sizeof sha);
    out->free_length = (size_t)snprintf(
        out->free, sizeof out->free,
        "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%.*s\r\n$1\r\n1\r\n$32\r\nkey-%028zu\r\n$16\r\n%016zx\r\n",
        REDIS_SHA, sha + strlen("$40\r\n"), key, value);
}

struct redis_peer *redis_peer_open(const char *server, size_t clients, bool compares)
{
    struct redis_peer *peer = rounds_memory(sizeof *peer + clients * sizeof peer->clients[0]);
    peer->events = epoll_create1(EPOLL_CLOEXEC);
    peer->count = clients;
    for (size_t i = 0; i < clients; i++) {
        struct client *client = &peer->clients[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
        client->file = redis_peer_connect(server);
        redis_peer_commands(client->file, i, i, compares, &client->commands);
        if (epoll_ctl(peer->events, EPOLL_CTL_ADD, client->file, &event) != 0)
            rounds_fail("redis", strerror(errno));
    }
    return peer;
}

void redis_peer_close(struct redis_peer **peer)
{
    for (size_t i = 0; i < (*peer)->count; i++)
        (void)close((*peer)->clients[i].file);
    (void)close((*peer)->events);
    free(*peer);
    *peer = NULL;
}

static void ask(struct client *client, bool hold)
{
    const char *command = hold ? client->commands.set : client->commands.free;
    size_t length = hold ? client->commands.set_length : client->commands.free_length;
    client->holds = hold;
    if (write(client->file, command, length) != (ssize_t)length)
        rounds_fail("redis", strerror(errno));
}

static void check_answer(const struct client *client)
{
    char reply[64];
    receive(client->file, reply, sizeof reply);
    if (strcmp(reply, client->holds ? taken : given_back) != 0)
        rounds_fail("redis answered", reply);
}

double redis_peer_pair_us(struct redis_peer *peer, size_t pairs)
{
    struct epoll_event events[EVENTS];
    size_t begun = 0, done = 0;
    double from = rounds_seconds();
    for (; begun < peer->count && begun < pairs; begun++)
        ask(&peer->clients[begun], /* hold= */ true);
    while (done < pairs) {
        int count = epoll_wait(peer->events, events, EVENTS, /* timeout_ms= */ 10000);
        if (count <= 0)
            rounds_fail("redis", "no answer");
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            bool held = client->holds;
            check_answer(client);
            done += held ? 0 : 1;
            if (held || begun < pairs)
                ask(client, !held);
            begun += !held && begun < pairs ? 1 : 0;
        }
    }
    return (rounds_seconds() - from) * 1e6 / (double)pairs;
}
