/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon on memory: in the test's own thread, without sockets of its own, and peers that are the
 * other ends of its connections. Replies are flattened to text: {a b} is a map, [a b] an array,
 * >[a b] a push, -TEXT an error, nil a null.
 */
#ifndef LEASEHOLD_TESTS_DAEMON_KIT_H
#define LEASEHOLD_TESTS_DAEMON_KIT_H

#include "face/daemon/daemon_internal.h"

enum { PEER_BYTES = 1 << 20 };

struct peer {
    struct daemon *daemon;
    struct daemon_connection *connection; /* invalid after its end */
    int file;
    bool ended; /* the daemon has closed its end */
    size_t length;
    char bytes[PEER_BYTES]; /* received and not yet taken */
};

struct daemon *kit_daemon_new(void);
/* On another store than memory:. */
struct daemon *kit_daemon_on(const char *url);
/* Of all daemons from now on; NULL: nobody reads it. */
void kit_read_log(void (*reader)(const struct daemon_line *line));
/* The options stay the caller's. */
struct daemon *kit_daemon_with(const struct daemon_options *with);
/* One turn of the loop, which waits at most that long for something to do. */
void kit_daemon_turn(struct daemon *daemon, int most_ms);

struct peer *peer_new(struct daemon *daemon);
/* As if a listener had accepted it. */
struct peer *peer_from(struct daemon *daemon, const struct listener_peer *from);
/* One that speaks HTTP. */
struct peer *peer_new_web(struct daemon *daemon);
/* Closes it, and turns until the daemon has noticed. */
void peer_free(struct peer *peer);
/* The same, if it is not NULL; it is then. */
void peer_leave(struct peer **peer);
/* The connection with this number; NULL: it has ended. */
struct daemon_connection *kit_connection(const struct daemon *daemon, uint64_t number);
void peer_send_bytes(struct peer *peer, const char *bytes, size_t length);
/* One command; its arguments are separated by single spaces, and '~' in them stands for a space. */
void peer_send(struct peer *peer, const char *command);
/* The next message; NULL if none comes before the connection has ended, or within 20 s. Valid until
 * the next call. */
const char *peer_message(struct peer *peer);
/* Sends a command and returns its reply. */
const char *peer_ask(struct peer *peer, const char *command);
/* Receives what is there. */
void peer_receive(struct peer *peer);
/* The same; true if a whole message is there. */
bool peer_has_message(struct peer *peer);

/* The length of the first response in the bytes, and its status; 0: it is not complete. Asserts its
 * form. An event stream is a response without a body, and so is one to HEAD. */
size_t web_response(const char *bytes, size_t length, bool to_head, int *out_status);
/* The next response, as "STATUS BODY"; NULL as peer_message(). */
const char *peer_response(struct peer *peer);
/* Sends text and returns the next response. */
const char *peer_ask_web(struct peer *peer, const char *text);
/* All that was received and not taken, after a few turns. Valid until the next call. */
const char *peer_take_all(struct peer *peer);

/* The value of a map in flattened text, up to the next space; "" if there is none. */
const char *reply_value(const char *flat, const char *name);

#endif
