/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of the test's own, through a program that knows its kind (scripts/server-redis.sh,
 * scripts/server-github.sh):
 *
 *     PROGRAM start FOLDER       starts it, or starts it again after `kill`, with the same data and
 *                                address; returns when it replies
 *     PROGRAM url FOLDER [PORT]  prints the store's URL, or the one through that loopback port;
 *                                variables that it needs come before it: NAME=VALUE … URL
 *     PROGRAM port FOLDER        prints its port
 *     PROGRAM kill FOLDER        kills it; returns when it is gone
 *     PROGRAM freeze FOLDER      stops all its processes; returns when they are stopped
 *     PROGRAM thaw FOLDER        continues them
 *     PROGRAM stop FOLDER        ends it in order; returns when it is gone
 *
 * Data and state are in the folder. If the test dies, another process runs `kill`.
 */
#ifndef LEASEHOLD_TESTS_SERVER_PROGRAM_H
#define LEASEHOLD_TESTS_SERVER_PROGRAM_H

#include "fixture.h"

/* All return false when the program fails. The first start sets the fixture's URL and driver.
 * server_start() and server_url() set the variables of the URL in this process. */
bool server_start(struct fixture *fixture);
bool server_kill(const struct fixture *fixture);
bool server_freeze(const struct fixture *fixture);
bool server_thaw(const struct fixture *fixture);
/* Ends the server; no effect if none was started. */
bool server_stop(struct fixture *fixture);
/* 0 on failure. */
uint16_t server_port(const struct fixture *fixture);
bool server_url(const struct fixture *fixture, uint16_t port, char *out, size_t size);

#endif
