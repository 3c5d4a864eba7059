/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for the lock API of etcd, through its JSON gateway: etcd_load PORT CLIENTS COUNT prints the
 * locks per second. Each connection has a lease of its own, so that only the locks are measured.
 */
#include "load_peer.h"
#include "rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MOST = 1024, EVENTS = 256, NAME_DIGITS = 12 };

static struct load_peer peers[CLIENTS_MOST];
static char leases[CLIENTS_MOST][24];
static uint64_t to_send, to_receive, key_number;
static int poll_file;

static void etcd_post(const struct load_peer *peer, const char *path, const char *body)
{
    char bytes[1024];
    int length =
        snprintf(bytes, sizeof bytes,
                 "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, strlen(body), body);
    load_check(length > 0 && (size_t)length < sizeof bytes, "request");
    load_send(peer, bytes, (size_t)length);
}

/* True once the whole response has arrived; it begins at in[0]. */
static bool etcd_is_whole(struct load_peer *peer)
{
    peer->in[peer->length < LOAD_IN ? peer->length : LOAD_IN - 1] = '\0';
    const char *body = strstr(peer->in, "\r\n\r\n");
    const char *length = strstr(peer->in, "Content-Length: ");
    if (body == NULL)
        return false;
    load_check(length != NULL && length < body, "a response without a length");
    size_t size = strtoul(length + strlen("Content-Length: "), NULL, 10);
    if (peer->length < (size_t)(body + 4 - peer->in) + size)
        return false;
    load_check(strncmp(peer->in, "HTTP/1.1 200", 12) == 0, peer->in);
    return true;
}

static void etcd_grant(struct load_peer *peer, char out[24])
{
    etcd_post(peer, "/v3/lease/grant", "{\"TTL\":\"600\"}");
    do
        load_receive(peer);
    while (!etcd_is_whole(peer));
    peer->length = 0;
    const char *id = strstr(peer->in, "\"ID\":\"");
    load_check(id != NULL && sscanf(id + 6, "%23[0-9]", out) == 1, "lease");
}

/* The name is any new text that is base64. */
static void etcd_send_lock(struct load_peer *peer)
{
    char body[256];
    if (to_send == 0)
        return;
    to_send--;
    (void)snprintf(body, sizeof body, "{\"name\":\"%0*llu\",\"lease\":\"%s\"}", NAME_DIGITS,
                   (unsigned long long)key_number++, leases[peer - peers]);
    etcd_post(peer, "/v3/lock/lock", body);
}

static void etcd_serve(void)
{
    struct epoll_event events[EVENTS];
    while (to_receive > 0) {
        int count = epoll_wait(poll_file, events, EVENTS, -1);
        load_check(count > 0, "epoll_wait");
        for (int i = 0; i < count; i++) {
            struct load_peer *peer = events[i].data.ptr;
            load_receive(peer);
            if (!etcd_is_whole(peer))
                continue;
            peer->length = 0;
            to_receive--;
            etcd_send_lock(peer);
        }
    }
}

int main(int count, char **words)
{
    load_check(count == 4, "usage: etcd_load PORT CLIENTS COUNT");
    size_t clients = strtoul(words[2], NULL, 10);
    load_check(clients > 0 && clients <= CLIENTS_MOST, "clients");
    poll_file = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &peers[i]};
        load_open(&peers[i], (uint16_t)strtoul(words[1], NULL, 10));
        etcd_grant(&peers[i], leases[i]);
        load_check(epoll_ctl(poll_file, EPOLL_CTL_ADD, peers[i].file, &event) == 0, "epoll_ctl");
    }
    key_number = (uint64_t)getpid() * 100000;
    to_send = to_receive = strtoull(words[3], NULL, 10);
    uint64_t all = to_receive;
    double since = rounds_seconds();
    for (size_t i = 0; i < clients; i++)
        etcd_send_lock(&peers[i]);
    etcd_serve();
    printf("%.0f\n", (double)all / (rounds_seconds() - since));
    return 0;
}
