/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis driver and a scripted server, including replies that no real one gives. Both run in one
 * thread: the test runs driver and server in turn until the expected event.
 */
#ifndef LEASEHOLD_TESTS_REDIS_KIT_H
#define LEASEHOLD_TESTS_REDIS_KIT_H

#include "store/redis/redis_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    CONNECTIONS_MAX = 16,
    SAID_MAX = 64 * 1024,
    COMMAND_MAX = 2048,
    TIMEOUT = 400,
    WAIT = 30000
};

extern struct redis *redis;
extern struct record record;
extern int64_t timeout_ms; /* TIMEOUT at the beginning of every test */

struct connection {
    int file;
    struct resp resp;
    size_t length;
    char bytes[SAID_MAX];
};

struct fake_server {
    int listening;
    uint16_t port;
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    char said[SAID_MAX]; /* all commands, one per line, their arguments separated by blanks */
    /* The reply to a command; NULL: none. */
    const char *(*reply)(size_t connection, const char *command);
};

/* The replies of the store: the last one, and their number. */
struct fake_client {
    struct store_reply reply;
    char why[512], bytes[RECORD_MAX + 1];
    unsigned count;
};

extern struct fake_server server;
extern struct fake_client heard;

int set_up(void **state);
int take_down(void **state);

void open_store(const char *options);
/* Closes the store and its connections; another one may be opened. */
void close_store(void);
void submit_request(const struct store_request *request);
void submit(enum store_verb verb, const char *key, uint64_t revision, const char *bytes);
void until_heard(unsigned count);
/* A record of "k" with one waiter. */
const char *with_a_waiter(void);

void send_to(size_t connection, const char *words);
void hang_up(size_t connection);
void turn_for(int64_t ms);
bool until_said(const char *words);
unsigned times_said(const char *words);
bool begins(const char *command, const char *word);
/* The replies that most tests have in common. */
const char *usual(const char *command);

#endif
