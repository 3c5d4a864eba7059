/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_peer.h. */
#include "redis_peer.h"

#include "rounds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { COMMAND = 160, EVENTS = 64 };

struct client {
    int file;
    bool holds; /* or asks for the lock; else it is being given back */
    size_t set_length, del_length;
    char set[COMMAND], del[COMMAND];
};

struct redis_peer {
    int events;
    size_t count;
    struct client clients[];
};

static int connect_to(const char *path)
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

/* Keys of 32 bytes and a value that tells the holders apart, as the usual libraries do. */
static void prepare(struct client *client, size_t number)
{
    int set = snprintf(client->set, sizeof client->set,
                       "*6\r\n$3\r\nSET\r\n$32\r\nkey-%028zu\r\n$16\r\n%016zx\r\n$2\r\nNX\r\n"
                       "$2\r\nPX\r\n$5\r\n30000\r\n",
                       number, number);
    int del = snprintf(client->del, sizeof client->del, "*2\r\n$3\r\nDEL\r\n$32\r\nkey-%028zu\r\n",
                       number);
    client->set_length = (size_t)set;
    client->del_length = (size_t)del;
}

struct redis_peer *redis_peer_open(const char *socket, size_t clients)
{
    struct redis_peer *peer = rounds_memory(sizeof *peer + clients * sizeof peer->clients[0]);
    peer->events = epoll_create1(EPOLL_CLOEXEC);
    peer->count = clients;
    for (size_t i = 0; i < clients; i++) {
        struct client *client = &peer->clients[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
        prepare(client, i);
        client->file = connect_to(socket);
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
    const char *command = hold ? client->set : client->del;
    size_t length = hold ? client->set_length : client->del_length;
    client->holds = hold;
    if (write(client->file, command, length) != (ssize_t)length)
        rounds_fail("redis", strerror(errno));
}

static void check_answer(const struct client *client)
{
    char answer[64];
    const char *expected = client->holds ? "+OK\r\n" : ":1\r\n";
    ssize_t got = read(client->file, answer, sizeof answer - 1);
    answer[got > 0 ? got : 0] = '\0';
    if (strcmp(answer, expected) != 0)
        rounds_fail("redis answered", answer);
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
