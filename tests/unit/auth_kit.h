/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon on memory: with a file of credentials, whose log is kept. auth_kit_begin() and
 * auth_kit_end() are the set-up and the tear-down of each case.
 */
#ifndef LEASEHOLD_TESTS_AUTH_KIT_H
#define LEASEHOLD_TESTS_AUTH_KIT_H

#include "daemon_kit.h"

/* Digests of "alpha" and "beta". */
#define ALPHA "sha256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
#define BETA  "sha256:f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"

#define ONE  "ann " ALPHA " all a:\n"
#define BOTH ONE "bob " BETA " read,take,renew *\n"

#define NO_AUTH    "-NOAUTH Authentication required."
#define WRONG_PASS "-WRONGPASS invalid username-password pair or user is disabled."

extern struct daemon *kit_daemon;          /* NULL before serve() */
extern struct daemon_options kit_settings; /* of the next one */
extern char kit_tokens[96];                /* the path of the file */
extern char kit_logged[16 * 1024];         /* lines: LEVEL EVENT: TEXT */
extern const struct listener_peer kit_remote;

int auth_kit_begin(void **state);
int auth_kit_end(void **state);
void auth_kit_forget_log(void);
void put_tokens(const char *text);
/* Starts the daemon, with that file. */
void serve(const char *tokens);
/* Replaces the file and reads it, as SIGHUP does. */
void reload(const char *tokens);

struct listener_peer unix_peer(unsigned uid);
struct peer *connect_remote(void);
/* After a command that must be answered with OK. */
struct peer *connect_as(const char *auth);
/* The reply must begin so. */
void expect(struct peer *peer, const char *command, const char *reply);
void expect_outcome(struct peer *peer, const char *command, const char *outcome);
/* The daemon ends the connection, and sends nothing more. */
void expect_end(struct peer *peer);

#endif
