/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile.h: the connections of one server. Everything happens in wire_serve(). */
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    DRIP_MS = 20,
    PIECE = 64 * 1024,
    FILES_MAX = 4 + 1 + 2 * CONNS_MAX,
};

int64_t wire_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- bytes ---- */

void bytes_add(struct bytes *bytes, const char *from, size_t length)
{
    size_t room = bytes->room > 0 ? bytes->room : 4096;
    while (room < bytes->length + length + 1)
        room *= 2;
    if (room != bytes->room) {
        char *at = realloc(bytes->at, room);
        if (at == NULL)
            abort();
        bytes->at = at;
        bytes->room = room;
    }
    if (length > 0)
        memcpy(bytes->at + bytes->length, from, length);
    bytes->length += length;
    bytes->at[bytes->length] = '\0';
}

void bytes_add_text(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

void bytes_take(struct bytes *bytes, size_t length)
{
    if (length == 0)
        return;
    memmove(bytes->at, bytes->at + length, bytes->length - length + 1);
    bytes->length -= length;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

/* ---- connections ---- */

static void conn_end(struct conn *conn, bool resets)
{
    const struct linger at_once = {.l_onoff = 1};
    if (resets)
        (void)setsockopt(conn->file, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(conn->file);
    if (conn->up >= 0)
        (void)close(conn->up);
    bytes_free(&conn->in);
    bytes_free(&conn->up_in);
    bytes_free(&conn->out);
    *conn = (struct conn){.file = -1, .up = -1};
}

void conn_drip(struct conn *conn)
{
    conn->drips_at_ms = wire_now_ms() + DRIP_MS;
}

static int listen_on_loopback(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0 || bind(file, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(file, 64) != 0 || getsockname(file, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *out_port = ntohs(address.sin_port);
    return file;
}

int wire_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (file >= 0 && connect(file, (struct sockaddr *)&address, sizeof address) == 0) {
        (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return file;
    }
    if (file >= 0)
        (void)close(file);
    return -1;
}

bool wire_open(struct wire *wire)
{
    for (size_t i = 0; i < CONNS_MAX; i++)
        wire->conns[i] = (struct conn){.file = -1, .up = -1};
    wire->listening = listen_on_loopback(&wire->port);
    return wire->listening >= 0;
}

void wire_drop(struct wire *wire)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (wire->conns[i].file >= 0)
            conn_end(&wire->conns[i], /* resets= */ false);
    }
    for (int file; (file = accept4(wire->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        (void)close(file); /* the newest connection, not served yet */
}

void wire_close(struct wire *wire)
{
    wire_drop(wire);
    (void)close(wire->listening);
}

static void accept_one(struct wire *wire)
{
    int file = accept4(wire->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), yes = 1;
    struct conn *conn = NULL;
    for (size_t i = 0; i < CONNS_MAX && conn == NULL; i++)
        conn = wire->conns[i].file < 0 ? &wire->conns[i] : NULL;
    if (file < 0 || conn == NULL) {
        if (file >= 0)
            (void)close(file);
        return;
    }
    (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *conn = (struct conn){.wire = wire, .file = file, .up = -1};
    if (!wire->opened(conn))
        conn_end(conn, /* resets= */ false);
}

/* ---- reading and writing ---- */

/* False at end of file. */
static bool read_some(int file, struct bytes *into, bool keeps)
{
    static char piece[PIECE];
    ssize_t got = recv(file, piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (keeps)
        bytes_add(into, piece, (size_t)got);
    return got > 0;
}

static size_t left_of(const struct conn *conn)
{
    return conn->out.length - conn->sent;
}

static bool is_done(const struct conn *conn)
{
    return left_of(conn) == 0 && conn->endless == NULL;
}

/* False when the peer is gone. */
static bool write_some(struct conn *conn, int64_t now_ms)
{
    size_t least = conn->endless == NULL ? 0 : conn->drips_at_ms == 0 ? PIECE : 1;
    while (left_of(conn) < least)
        bytes_add(&conn->out, conn->endless, conn->endless_length);
    size_t length = left_of(conn);
    if (conn->drips_at_ms != 0 && length > 0) {
        if (now_ms < conn->drips_at_ms)
            return true;
        conn_drip(conn);
        length = 1;
    }
    if (length == 0)
        return true;
    ssize_t sent = send(conn->file, conn->out.at + conn->sent, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    conn->sent += (size_t)sent;
    if (left_of(conn) == 0 || (conn->endless != NULL && conn->sent > PIECE)) {
        bytes_take(&conn->out, conn->sent);
        conn->sent = 0;
    }
    return true;
}

static bool wants_to_write(const struct conn *conn, int64_t now_ms)
{
    return !is_done(conn) && (conn->drips_at_ms == 0 || now_ms >= conn->drips_at_ms);
}

static void serve_conn(struct conn *conn, short came, short up_came, int64_t now_ms)
{
    bool lives = true, news = false;
    if ((came & (POLLIN | POLLHUP | POLLERR)) != 0) {
        lives = read_some(conn->file, &conn->in, !conn->deaf);
        news = conn->in.length > 0;
    }
    if (lives && (up_came & (POLLIN | POLLHUP | POLLERR)) != 0) {
        lives = read_some(conn->up, &conn->up_in, !conn->deaf);
        news = true;
    }
    if (lives && news && !conn->deaf)
        conn->wire->came(conn);
    lives = lives && write_some(conn, now_ms);
    if (!lives)
        conn_end(conn, /* resets= */ false);
    else if (is_done(conn) && (conn->ending == END_CLOSE || conn->ending == END_RESET))
        conn_end(conn, conn->ending == END_RESET);
}

static int64_t next_ms(const struct wire *wire, int64_t until_ms)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        const struct conn *conn = &wire->conns[i];
        bool drips = conn->file >= 0 && conn->drips_at_ms != 0 && !is_done(conn);
        if (drips && conn->drips_at_ms < until_ms)
            until_ms = conn->drips_at_ms;
    }
    return until_ms;
}

void wire_serve(struct wire *wire, struct pollfd *files, size_t count, int64_t until_ms)
{
    struct pollfd all[FILES_MAX];
    int64_t now_ms = wire_now_ms(), left_ms = next_ms(wire, until_ms) - now_ms;
    memcpy(all, files, count * sizeof *files);
    all[count] = (struct pollfd){.fd = wire->listening, .events = POLLIN};
    for (size_t i = 0; i < CONNS_MAX; i++) {
        const struct conn *conn = &wire->conns[i];
        struct pollfd *own = &all[count + 1 + 2 * i];
        own[0] = (struct pollfd){.fd = conn->file, .events = POLLIN};
        if (wants_to_write(conn, now_ms))
            own[0].events = (short)(own[0].events | POLLOUT);
        own[1] = (struct pollfd){.fd = conn->up, .events = POLLIN};
    }
    (void)poll(all, count + 1 + (size_t)2 * CONNS_MAX, left_ms > 0 ? (int)left_ms : 0);
    memcpy(files, all, count * sizeof *files);
    now_ms = wire_now_ms();
    for (size_t i = 0; i < CONNS_MAX; i++) {
        const struct pollfd *own = &all[count + 1 + 2 * i];
        if (wire->conns[i].file >= 0)
            serve_conn(&wire->conns[i], own[0].revents, own[1].revents, now_ms);
    }
    if (all[count].revents != 0)
        accept_one(wire);
}
