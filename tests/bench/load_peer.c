/* SPDX-License-Identifier: Apache-2.0 */
/* See load_peer.h. */
#include "load_peer.h"

#include "base/text.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORDS_MOST = 8, ITEMS_MOST = 256, LINE_SIZE = LOAD_COMMAND_MAX / 2 };

void load_fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

bool load_allow_files(size_t files)
{
    struct rlimit limit;
    load_check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    load_check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    return limit.rlim_max >= files;
}

void load_open(struct load_peer *peer, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    peer->at = peer->length = 0;
    peer->step = 0;
    peer->number = 0;
    peer->resp = (struct resp){.bulk_max = LOAD_IN, .items_max = ITEMS_MOST};
    peer->file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    load_check(peer->file >= 0, "socket");
    load_check(connect(peer->file, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    load_check(setsockopt(peer->file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
}

void load_close(struct load_peer *peer)
{
    (void)close(peer->file);
    peer->file = -1;
}

/* Splits the line at its spaces. */
static size_t load_encode(char out[LOAD_COMMAND_MAX], char line[LINE_SIZE], int length)
{
    const char *words[WORDS_MOST];
    size_t count = 0;
    struct text text;
    load_check(length > 0 && length < LINE_SIZE, "a command is too long");
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        load_check(count < WORDS_MOST, "a command has too many words");
        words[count++] = word;
    }
    text_init(&text, out, LOAD_COMMAND_MAX);
    text_add(&text, "*");
    text_add_u64(&text, count);
    for (size_t i = 0; i < count; i++) {
        text_add(&text, "\r\n$");
        text_add_u64(&text, strlen(words[i]));
        TEXT_JOIN(&text, "\r\n", words[i]);
    }
    text_add(&text, "\r\n");
    return text.length;
}

size_t load_command(char out[LOAD_COMMAND_MAX], const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() has filled it */
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return load_encode(out, line, length);
}

void load_send(const struct load_peer *peer, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(peer->file, bytes, length, MSG_NOSIGNAL);
        load_check(sent > 0, "send");
        bytes += sent;
        length -= (size_t)sent;
    }
}

void load_receive(struct load_peer *peer)
{
    if (peer->at > 0) {
        memmove(peer->in, peer->in + peer->at, peer->length - peer->at);
        peer->length -= peer->at;
        peer->at = 0;
    }
    load_check(peer->length < sizeof peer->in, "a reply is too long");
    ssize_t got = recv(peer->file, peer->in + peer->length, sizeof peer->in - peer->length, 0);
    load_check(got > 0, "the daemon ended the connection");
    peer->length += (size_t)got;
}

/* The members of a map; with RESP2 it is a list. */
static void load_read_map(struct resp_walk *walk, struct load_reply *out)
{
    struct resp_item name, value;
    while (resp_next(walk, &name) && resp_next(walk, &value)) {
        if (resp_is(&name, "outcome"))
            (void)snprintf(out->outcome, sizeof out->outcome, "%.*s", (int)value.length,
                           value.text);
        else if (resp_is(&name, "token") && value.kind == RESP_TEXT)
            out->token = strtoull(value.text, NULL, 10);
        resp_skip(walk, &value);
    }
    out->ok = strcmp(out->outcome, "ok") == 0;
}

bool load_next(struct load_peer *peer, struct load_reply *out)
{
    size_t size = 0;
    const char *bytes = peer->in + peer->at;
    if (peer->at == peer->length)
        return false;
    enum resp_result result = resp_feed(&peer->resp, bytes, peer->length - peer->at, &size);
    load_check(result != RESP_BROKEN, "the daemon sent no RESP");
    if (result == RESP_MORE)
        return false;
    struct resp_walk walk = {.bytes = bytes, .length = size};
    struct resp_item item;
    out->token = 0;
    out->outcome[0] = '\0';
    peer->at += size;
    load_check(resp_next(&walk, &item), "an empty reply");
    out->ok = item.kind != RESP_ERROR;
    if (item.kind == RESP_LIST)
        load_read_map(&walk, out);
    else
        (void)snprintf(out->outcome, sizeof out->outcome, "%.*s", (int)item.length,
                       item.text != NULL ? item.text : "");
    return true;
}

void load_await(struct load_peer *peer, struct load_reply *out)
{
    while (!load_next(peer, out))
        load_receive(peer);
}

void load_call(struct load_peer *peer, struct load_reply *out, const char *format, ...)
{
    char command[LOAD_COMMAND_MAX] = "", line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() has filled it */
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    load_send(peer, command, load_encode(command, line, length));
    load_await(peer, out);
}
