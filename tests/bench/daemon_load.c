/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for a daemon on the loopback, from one thread:
 *   daemon_load acquire PORT CLIENTS COUNT [PIPELINE]  new keys; requests per second
 *   daemon_load http PORT CLIENTS COUNT                the same over HTTP keep-alive
 *   daemon_load pairs PORT CLIENTS COUNT               acquire and release; pairs per second
 *   daemon_load handover PORT ECHO_PORT WAITERS ROUNDS medians of a hand-over, and of a bare round
 *                                                      trip to the echo beside it, in microseconds
 *   daemon_load verb PORT VERB KEY COUNT               one verb, one request after the other
 *   daemon_load hold PORT LOCKS CLIENTS                holds locks, and lets the clients wait for
 *                                                      one more; then prints a line and stays
 *   daemon_load echo                                   a server that prints its port, until killed
 */
#include "load_peer.h"
#include "rounds.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MOST = 16384, EVENTS = 256, PIPELINE_MOST = 256, TTL_MS = 600000 };
enum { ACQUIRE_TTL_MS = 30000 }; /* as the acquisitions of redis-benchmark: old ones expire */

static struct load_peer *peers;
static size_t peer_count;
static int poll_file = -1;

static void load_open_all(uint16_t port, size_t count)
{
    load_check(count > 0 && count <= CLIENTS_MOST && load_allow_files(count + 16), "clients");
    peers = calloc(count, sizeof *peers);
    poll_file = epoll_create1(EPOLL_CLOEXEC);
    load_check(peers != NULL && poll_file >= 0, "epoll_create1");
    peer_count = count;
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &peers[i]};
        load_open(&peers[i], port);
        load_check(epoll_ctl(poll_file, EPOLL_CTL_ADD, peers[i].file, &event) == 0, "epoll_ctl");
    }
}

/* Calls `on_reply` for every reply that `next` finds, until `left` is 0. */
static void load_serve(const uint64_t *left,
                       bool (*next)(struct load_peer *peer, struct load_reply *out),
                       void (*on_reply)(struct load_peer *peer, const struct load_reply *reply))
{
    struct epoll_event events[EVENTS];
    struct load_reply reply;
    while (*left > 0) {
        int count = epoll_wait(poll_file, events, EVENTS, -1);
        load_check(count > 0, "epoll_wait");
        for (int i = 0; i < count; i++) {
            struct load_peer *peer = events[i].data.ptr;
            load_receive(peer);
            while (next(peer, &reply))
                on_reply(peer, &reply);
        }
    }
}

/* ---- acquire only ---- */

static uint64_t to_send, to_receive, key_number, pipeline = 1;
static int acquire_ttl_ms = ACQUIRE_TTL_MS;

static void acquire_send(struct load_peer *peer)
{
    static char bytes[PIPELINE_MOST * 96 + LOAD_COMMAND_MAX];
    size_t length = 0;
    for (; peer->number < pipeline && to_send > 0; peer->number++, to_send--)
        length += load_command(bytes + length, "LOCK.ACQUIRE key:%012" PRIu64 " holder %d",
                               key_number++, acquire_ttl_ms);
    load_send(peer, bytes, length);
}

static void acquire_on_reply(struct load_peer *peer, const struct load_reply *reply)
{
    load_check(reply->ok, reply->outcome);
    to_receive--;
    if (--peer->number == 0)
        acquire_send(peer);
}

static void load_acquire(uint16_t port, size_t clients, uint64_t count)
{
    load_check(pipeline > 0 && pipeline <= PIPELINE_MOST, "pipeline");
    load_open_all(port, clients);
    key_number = (uint64_t)getpid() * 100000000;
    to_send = to_receive = count;
    double since = rounds_seconds();
    for (size_t i = 0; i < clients; i++)
        acquire_send(&peers[i]);
    load_serve(&to_receive, load_next, acquire_on_reply);
    printf("%.0f\n", (double)count / (rounds_seconds() - since));
}

/* ---- acquire only, over HTTP ---- */

static void web_send(struct load_peer *peer)
{
    char body[96], bytes[LOAD_COMMAND_MAX];
    if (to_send == 0)
        return;
    to_send--;
    int body_length =
        snprintf(body, sizeof body, "{\"holder\":\"holder\",\"ttl_ms\":%d}", ACQUIRE_TTL_MS);
    int length = snprintf(bytes, sizeof bytes,
                          "POST /v1/locks/key:%012" PRIu64 "/acquire HTTP/1.1\r\n"
                          "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
                          "Content-Length: %d\r\n\r\n%s",
                          key_number++, body_length, body);
    load_check(length > 0 && length < (int)sizeof bytes, "a request is too long");
    load_send(peer, bytes, (size_t)length);
}

/* A response whose body has not arrived as a whole is left. */
static bool web_next(struct load_peer *peer, struct load_reply *out)
{
    static const char ok[] = "HTTP/1.1 200 ", field[] = "\r\nContent-Length: ";
    const char *bytes = peer->in + peer->at, *end = peer->in + peer->length;
    const char *body = memmem(bytes, (size_t)(end - bytes), "\r\n\r\n", 4);
    if (body == NULL)
        return false;
    const char *number = memmem(bytes, (size_t)(body - bytes), field, sizeof field - 1);
    load_check(number != NULL, "a response without Content-Length");
    size_t length = strtoul(number + sizeof field - 1, NULL, 10);
    if ((size_t)(end - body) < 4 + length)
        return false;
    out->ok = strncmp(bytes, ok, sizeof ok - 1) == 0;
    (void)snprintf(out->outcome, sizeof out->outcome, "%.12s", bytes);
    peer->at += (size_t)(body - bytes) + 4 + length;
    return true;
}

static void web_on_reply(struct load_peer *peer, const struct load_reply *reply)
{
    load_check(reply->ok, reply->outcome);
    to_receive--;
    web_send(peer);
}

static void load_web(uint16_t port, size_t clients, uint64_t count)
{
    load_open_all(port, clients);
    key_number = (uint64_t)getpid() * 100000000;
    to_send = to_receive = count;
    double since = rounds_seconds();
    for (size_t i = 0; i < clients; i++)
        web_send(&peers[i]);
    load_serve(&to_receive, web_next, web_on_reply);
    printf("%.0f\n", (double)count / (rounds_seconds() - since));
}

/* ---- pairs ---- */

static void pair_send_acquire(struct load_peer *peer)
{
    char bytes[LOAD_COMMAND_MAX] = "";
    if (to_send == 0)
        return;
    to_send--;
    peer->step = 0;
    load_send(peer, bytes,
              load_command(bytes, "LOCK.ACQUIRE pair:%zu holder 30000", (size_t)(peer - peers)));
}

static void pair_on_reply(struct load_peer *peer, const struct load_reply *reply)
{
    load_check(reply->ok, reply->outcome);
    if (peer->step++ == 0) {
        char bytes[LOAD_COMMAND_MAX] = "";
        load_send(peer, bytes,
                  load_command(bytes, "LOCK.RELEASE pair:%zu %" PRIu64, (size_t)(peer - peers),
                               reply->token));
        return;
    }
    to_receive--;
    pair_send_acquire(peer);
}

static void load_pairs(uint16_t port, size_t clients, uint64_t count)
{
    load_open_all(port, clients);
    to_send = to_receive = count;
    double since = rounds_seconds();
    for (size_t i = 0; i < clients; i++)
        pair_send_acquire(&peers[i]);
    load_serve(&to_receive, load_next, pair_on_reply);
    printf("%.0f\n", (double)count / (rounds_seconds() - since));
}

/* ---- hand-over ---- */

static void handover_wait(struct load_peer *peer)
{
    char bytes[LOAD_COMMAND_MAX] = "";
    load_send(peer, bytes,
              load_command(bytes, "LOCK.ACQUIRE handover:%d holder-%zu %d WAIT %d", (int)getpid(),
                           (size_t)(peer - peers), TTL_MS, TTL_MS));
}

/* A round trip to the echo, as long as a command. */
static double handover_bare(struct load_peer *echo)
{
    char bytes[LOAD_COMMAND_MAX] = "";
    size_t length = load_command(bytes, "LOCK.RELEASE handover 1234567890123456");
    double since = rounds_seconds();
    load_send(echo, bytes, length);
    for (echo->length = 0; echo->length < length;)
        load_receive(echo);
    return rounds_seconds() - since;
}

/* Of the waiter that got the key: its release, until the next one has its grant. */
static double handover_once(struct load_peer *from, uint64_t *token, struct load_peer *out[1])
{
    char bytes[LOAD_COMMAND_MAX] = "";
    struct epoll_event events[2];
    struct load_reply reply = {0};
    size_t length = load_command(bytes, "LOCK.RELEASE handover:%d %" PRIu64, (int)getpid(), *token);
    double took = 0, since = rounds_seconds();
    load_send(from, bytes, length);
    for (bool released = false, granted = false; !released || !granted;) {
        int count = epoll_wait(poll_file, events, 2, -1);
        for (int i = 0; i < count; i++) {
            struct load_peer *peer = events[i].data.ptr;
            load_receive(peer);
            if (!load_next(peer, &reply))
                continue;
            load_check(reply.ok, reply.outcome);
            if (peer == from) {
                released = true;
                continue;
            }
            took = rounds_seconds() - since;
            granted = true;
            *token = reply.token;
            out[0] = peer;
        }
    }
    return took;
}

static void load_handover(uint16_t port, uint16_t echo_port, size_t waiters, size_t rounds)
{
    struct load_peer echo, *holder = NULL;
    struct load_reply reply;
    double *took = rounds_memory(rounds * sizeof *took);
    double *bare = rounds_memory(rounds * sizeof *bare);
    load_open_all(port, waiters + 1);
    load_open(&echo, echo_port);
    holder = &peers[0];
    handover_wait(holder);
    load_await(holder, &reply);
    uint64_t token = reply.token;
    for (size_t i = 1; i <= waiters; i++)
        handover_wait(&peers[i]);
    for (size_t i = 0; i < rounds; i++) {
        struct load_peer *next = holder;
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000},
                        NULL); /* the daemon has queued the last waiter, and is idle */
        bare[i] = handover_bare(&echo);
        took[i] = handover_once(holder, &token, &next);
        handover_wait(holder);
        holder = next;
    }
    printf("%.1f %.1f\n", rounds_share(took, rounds, 0.5) * 1e6,
           rounds_share(bare, rounds, 0.5) * 1e6);
    free(took);
    free(bare);
}

/* ---- one verb after the other ---- */

static void load_verb(uint16_t port, const char *verb, const char *key, uint64_t count)
{
    struct load_peer peer;
    struct load_reply reply;
    uint64_t token = 0;
    load_open(&peer, port);
    for (uint64_t i = 0; i < count; i++) {
        if (strcmp(verb, "pair") == 0) {
            load_call(&peer, &reply, "LOCK.ACQUIRE %s:%" PRIu64 " holder 600000", key, i);
            load_check(reply.ok, reply.outcome);
            load_call(&peer, &reply, "LOCK.RELEASE %s:%" PRIu64 " %" PRIu64, key, i, reply.token);
        } else if (strcmp(verb, "renew") == 0) {
            if (token == 0) {
                load_call(&peer, &reply, "LOCK.ACQUIRE %s holder 600000", key);
                token = reply.token;
            }
            load_call(&peer, &reply, "LOCK.RENEW %s %" PRIu64, key, token);
        } else {
            load_call(&peer, &reply, "%s %s", verb, key);
        }
        load_check(reply.ok || reply.outcome[0] == '\0', reply.outcome);
    }
    if (token != 0)
        load_call(&peer, &reply, "LOCK.RELEASE %s %" PRIu64, key, token);
    load_close(&peer);
}

/* ---- a full daemon ---- */

static void load_hold(uint16_t port, uint64_t locks, size_t clients)
{
    struct load_reply reply;
    char bytes[LOAD_COMMAND_MAX] = "";
    pipeline = 64;
    acquire_ttl_ms = TTL_MS;
    load_acquire(port, /* clients= */ 1, locks);
    load_open_all(port, clients);
    load_call(&peers[0], &reply, "LOCK.ACQUIRE full holder %d", TTL_MS);
    load_check(reply.ok, reply.outcome);
    for (size_t i = 1; i < clients; i++)
        load_send(&peers[i], bytes,
                  load_command(bytes, "LOCK.ACQUIRE full holder %d WAIT %d", TTL_MS, TTL_MS));
    load_call(&peers[0], &reply, "PING");
    printf("full\n");
    (void)fflush(stdout);
    while (read(peers[0].file, bytes, sizeof bytes) > 0) { /* until the daemon ends */
    }
}

/* ---- the echo ---- */

static void load_echo(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char bytes[4096];
    int on = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    load_check(bind(listening, (struct sockaddr *)&address, size) == 0, "bind");
    load_check(listen(listening, 16) == 0, "listen");
    load_check(getsockname(listening, (struct sockaddr *)&address, &size) == 0, "getsockname");
    printf("%u\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    for (;;) {
        int file = accept(listening, NULL, NULL);
        load_check(file >= 0, "accept");
        (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        for (ssize_t got; (got = recv(file, bytes, sizeof bytes, 0)) > 0;)
            load_check(send(file, bytes, (size_t)got, MSG_NOSIGNAL) == got, "send");
        (void)close(file);
    }
}

static uint64_t load_number(const char *text)
{
    char *end = NULL;
    unsigned long long number = strtoull(text, &end, 10);
    load_check(*text != '\0' && *end == '\0', text);
    return number;
}

int main(int count, char **words)
{
    const char *mode = count > 1 ? words[1] : "";
    uint16_t port = count > 2 ? (uint16_t)load_number(words[2]) : 0;
    pipeline = count > 5 && strcmp(mode, "acquire") == 0 ? load_number(words[5]) : 1;
    if (strcmp(mode, "echo") == 0)
        load_echo();
    else if (strcmp(mode, "acquire") == 0 && count >= 5)
        load_acquire(port, load_number(words[3]), load_number(words[4]));
    else if (strcmp(mode, "http") == 0 && count == 5)
        load_web(port, load_number(words[3]), load_number(words[4]));
    else if (strcmp(mode, "pairs") == 0 && count == 5)
        load_pairs(port, load_number(words[3]), load_number(words[4]));
    else if (strcmp(mode, "handover") == 0 && count == 6)
        load_handover(port, (uint16_t)load_number(words[3]), load_number(words[4]),
                      load_number(words[5]));
    else if (strcmp(mode, "hold") == 0 && count == 5)
        load_hold(port, load_number(words[3]), load_number(words[4]));
    else if (strcmp(mode, "verb") == 0 && count == 6)
        load_verb(port, words[3], words[4], load_number(words[5]));
    else
        rounds_fail("daemon_load", "see the head of daemon_load.c for its arguments");
    return 0;
}
