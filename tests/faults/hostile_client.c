/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile.h: the clients that the suite runs besides the program. One uses functions that only
 * the library has; the others are wrong on purpose, each in one way that the suite must detect.
 */
#include "hostile.h"

#include "leasehold.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_MAX = 65536, GREED_MAX = 160 << 20, QUIET_MS = 200, PAUSE_MS = 150, HOLD_MS = 700 };

static const char escape = '\x1b';

/* ---- the library ---- */

static void on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    unsigned *changes = user;
    (void)report;
    *changes += view != NULL ? 1 : 0;
}

static int status_of(enum lh_outcome outcome)
{
    switch (outcome) {
    case LH_OK:
        return 0;
    case LH_BUSY:
        return 75;
    case LH_COOLING:
    case LH_DONE:
        return 73;
    case LH_LOST:
        return 76;
    case LH_UNAVAILABLE:
        return 69;
    case LH_DENIED:
        return 77;
    case LH_STALE:
        return 78;
    case LH_USAGE:
        return 64;
    default:
        return 70;
    }
}

static int use_library(const char *url, int64_t timeout_ms)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options wish = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_lease *lease = NULL;
    struct lh_watcher *watch = NULL;
    struct lh_report report = LH_REPORT_INIT, ignored = LH_REPORT_INIT;
    unsigned changes = 0;
    int64_t cached_ms = 0;
    options.timeout_ms = timeout_ms;
    wish.ttl_ms = 1500;
    enum lh_outcome outcome = lh_open(url, &options, &client, &report);
    if (outcome != LH_OK)
        return status_of(outcome);
    (void)lh_watch(client, "", on_change, &changes, &watch, &ignored);
    outcome = lh_acquire(client, "held", &wish, &lease, &report);
    for (int i = 0; i < 3; i++) {
        (void)lh_peek(client, "k", &cached_ms, &ignored);
        (void)poll(NULL, 0, PAUSE_MS);
    }
    if (lease != NULL) {
        (void)poll(NULL, 0, HOLD_MS);
        outcome = lh_release(&lease, &report);
    }
    if (watch != NULL)
        (void)lh_unwatch(&watch, &ignored);
    lh_close(&client);
    return status_of(outcome);
}

/* ---- wrong on purpose ---- */

/* The server's port, from the URL or the kubeconfig. */
static uint16_t port_of(const char *url)
{
    static const char host[] = "127.0.0.1:";
    char line[512];
    const char *path = getenv("KUBECONFIG"), *at = strstr(url, host);
    FILE *file = at == NULL && path != NULL ? fopen(path, "re") : NULL;
    while (file != NULL && at == NULL && fgets(line, sizeof line, file) != NULL)
        at = strstr(line, host);
    uint16_t port = at != NULL ? (uint16_t)strtoul(at + sizeof host - 1, NULL, 10) : 0;
    if (file != NULL)
        (void)fclose(file);
    return port;
}

static int ask(const char *url)
{
    static const char ping[] = "PING\r\n", get[] = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";
    bool redis = strncmp(url, "redis", 5) == 0;
    int file = wire_connect(port_of(url));
    const char *args = redis ? ping : get;
    if (file >= 0 && send(file, args, strlen(args), MSG_NOSIGNAL) > 0)
        return file;
    exit(69);
}

/* Reads until the connection is quiet for a while. */
static size_t read_reply(int file, char *reply)
{
    size_t length = 0;
    struct pollfd news = {.fd = file, .events = POLLIN};
    while (length < REPLY_MAX && poll(&news, 1, QUIET_MS) > 0) {
        ssize_t got = recv(file, reply + length, REPLY_MAX - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    return length;
}

/* Moves the ref of a key, and takes every reply for a success. */
static int trust(const char *url)
{
    static char reply[REPLY_MAX];
    static const char body[] = "{\"ref\":\"refs/leasehold/k/k\","
                               "\"sha\":\"00000000000000000000000000000000000000aa\"}";
    char request[512];
    int file = wire_connect(port_of(url));
    int length = snprintf(request, sizeof request,
                          "POST /repos/alice/locks/git/refs HTTP/1.1\r\nContent-Length: %zu\r\n"
                          "\r\n%s",
                          sizeof body - 1, body);
    if (file < 0 || send(file, request, (size_t)length, MSG_NOSIGNAL) <= 0)
        return 69;
    (void)read_reply(file, reply);
    return 0;
}

static int be_greedy(int file)
{
    struct bytes all = {0};
    static char piece[REPLY_MAX];
    struct pollfd news = {.fd = file, .events = POLLIN};
    while (all.length < GREED_MAX && poll(&news, 1, QUIET_MS) > 0) {
        ssize_t got = recv(file, piece, sizeof piece, 0);
        if (got <= 0)
            break;
        bytes_add(&all, piece, (size_t)got);
    }
    bytes_free(&all);
    return 0;
}

int hostile_client(char **args)
{
    static char reply[REPLY_MAX];
    const char *what = args[0], *url = args[1];
    if (strcmp(what, "library") == 0)
        return use_library(url, strtoll(args[2], NULL, 10));
    if (strcmp(what, "trust") == 0)
        return trust(url);
    int file = ask(url);
    if (strcmp(what, "greed") == 0)
        return be_greedy(file);
    size_t length = read_reply(file, reply);
    bool good = length > 0 && (memcmp(reply, "+PONG", 5) == 0 || strstr(reply, " 200 OK") != NULL);
    bool escapes = memchr(reply, escape, length) != NULL;
    if (strcmp(what, "crash") == 0 && escapes)
        abort();
    if (strcmp(what, "overflow") == 0 && escapes) {
        char *small = malloc(length / 2 + 1);
        for (size_t i = 0; small != NULL && i < length; i++)
            ((volatile char *)small)[i] = reply[i];
        free(small);
    }
    while (strcmp(what, "hang") == 0 && !good)
        (void)pause();
    if (strcmp(what, "escape") == 0 && escapes)
        (void)fwrite(reply, 1, length, stdout);
    return strcmp(what, "status") == 0 && !good ? 42 : 0;
}
