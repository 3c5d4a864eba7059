/* SPDX-License-Identifier: Apache-2.0 */
/* See auth_kit.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "auth_kit.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static struct text logged;

struct daemon *kit_daemon;
struct daemon_options kit_settings;
char kit_tokens[96], kit_logged[16 * 1024];

const struct listener_peer kit_remote = {.uid = (unsigned)-1, .pid = -1, .address = "192.0.2.1"};

static void keep_log(void *user, const struct daemon_line *line)
{
    (void)user;
    text_add_u64(&logged, (uint64_t)line->level);
    TEXT_JOIN(&logged, " ", line->class != NULL ? line->class : line->event, ": ", line->text,
              "\n");
}

void auth_kit_forget_log(void)
{
    text_init(&logged, kit_logged, sizeof kit_logged);
}

void put_tokens(const char *text)
{
    (void)unlink(kit_tokens);
    int file = open(kit_tokens, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    (void)close(file);
}

int auth_kit_begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-auth-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(kit_tokens, sizeof kit_tokens, "%s/tokens", folder);
    auth_kit_forget_log();
    kit_settings = (struct daemon_options){
        .connections_max = 1000, .store = "memory:", .log = keep_log, .tokens = kit_tokens};
    return 0;
}

int auth_kit_end(void **state)
{
    (void)state;
    if (kit_daemon != NULL) {
        size_t left = kit_daemon->before_auth.count;
        bool connected = kit_daemon->connection_count > 0;
        daemon_free(kit_daemon);
        kit_daemon = NULL;
        if (left > 0 && !connected)
            return -1; /* an address is still counted */
    }
    (void)unlink(kit_tokens);
    return rmdir(folder);
}

void serve(const char *tokens)
{
    char bytes[512];
    struct text why;
    text_init(&why, bytes, sizeof bytes);
    put_tokens(tokens);
    kit_daemon = kit_daemon_with(&kit_settings);
    if (!auth_load(kit_daemon, &why))
        fail_msg("%s", bytes);
}

void reload(const char *tokens)
{
    put_tokens(tokens);
    auth_reload(kit_daemon);
    for (int i = 0; i < 4; i++)
        kit_daemon_turn(kit_daemon, 0);
}

struct peer *connect_remote(void)
{
    return peer_from(kit_daemon, &kit_remote);
}

struct peer *connect_as(const char *auth)
{
    struct peer *peer = connect_remote();
    assert_string_equal(peer_ask(peer, auth), "OK");
    return peer;
}

void expect(struct peer *peer, const char *command, const char *reply)
{
    const char *got = peer_ask(peer, command);
    if (strncmp(got, reply, strlen(reply)) != 0)
        fail_msg("%s: '%s' does not begin with '%s'", command, got, reply);
}

/* The connection ends after what was written. */
void expect_end(struct peer *peer)
{
    const char *more = peer_message(peer);
    if (more != NULL)
        fail_msg("not the end, but '%s'", more);
    assert_true(peer->ended);
}

void expect_outcome(struct peer *peer, const char *command, const char *outcome)
{
    const char *got = peer_ask(peer, command);
    if (strcmp(reply_value(got, "outcome"), outcome) != 0)
        fail_msg("%s: '%s' is not %s", command, got, outcome);
}

struct listener_peer unix_peer(unsigned uid)
{
    struct listener_peer peer = {.local = true, .uid = uid, .pid = -1};
    text_copy(peer.address, sizeof peer.address, "unix");
    return peer;
}
