/* SPDX-License-Identifier: Apache-2.0 */
/* See suite.h. */
#include "suite.h"

#include "conformance.h"

#include "store/translate.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

struct kept {
    struct kept *next;
    _Alignas(16) char bytes[];
};

static struct kept *kept;
static struct record made, seen;

void *suite_keep(const void *bytes, size_t length)
{
    struct kept *block = calloc(1, sizeof *block + length + 1);
    if (block == NULL)
        abort();
    block->next = kept;
    kept = block;
    if (bytes != NULL)
        memcpy(block->bytes, bytes, length);
    return block->bytes;
}

void suite_forget(void)
{
    while (kept != NULL) {
        struct kept *block = kept;
        kept = block->next;
        free(block);
    }
}

int64_t suite_short_ms(void)
{
    enum { SHORT_MS = 60 };
    bool timed = (suite_bits() & STORE_TIME) != 0;
    int64_t least_ms = suite_facts().ttl_least_ms;
    return timed || least_ms < SHORT_MS ? SHORT_MS : least_ms;
}

void suite_outlive(int64_t ttl_ms)
{
    enum { ON_THE_SAFE_SIDE_MS = 20, COARSE_MS = 1000 };
    int64_t margin_ms = suite_facts().margin_ms;
    /* A clock that is not exact has whole seconds: the last one must be over, too. */
    suite_sleep(ttl_ms + margin_ms + (margin_ms > 0 ? COARSE_MS : 0) + ON_THE_SAFE_SIDE_MS);
}

const char *key_named(const char *name)
{
    char key[KEY_MAX + 1];
    (void)snprintf(key, sizeof key, "%s%s", case_prefix(), name);
    return suite_keep(key, strlen(key));
}

struct record *value_record(const char *key, const char *holder)
{
    record_init(&made, key);
    struct grant *grant = record_add_grant(&made);
    (void)snprintf(grant->holder, sizeof grant->holder, "%s", holder);
    (void)snprintf(grant->request, sizeof grant->request, "request of %.32s", holder);
    grant->session = client_session(0);
    grant->ttl_ms = HOUR_MS;
    return &made;
}

struct value value_encode(const struct record *record)
{
    static char bytes[RECORD_MAX + 1];
    size_t length = record_encode(record, bytes, sizeof bytes);
    EXPECT(length > 0);
    return (struct value){.bytes = suite_keep(bytes, length), .length = length};
}

struct value value_of(const char *key, const char *holder)
{
    return value_encode(value_record(key, holder));
}

struct value value_of_size(const char *key, size_t size)
{
    enum { NAME = 60, PLACE = 512 };
    struct record *record = value_record(key, "holder");
    size_t length = value_encode(record).length;
    while (length + PLACE < size && record->waiter_count < WAITERS_MAX) {
        struct waiter *waiter = record_add_waiter(record);
        (void)snprintf(waiter->request, sizeof waiter->request,
                       "one of many requests that fill the record, %u", record->waiter_count);
        memset(waiter->holder, 'h', NAME);
        waiter->holder[NAME] = '\0';
        waiter->session = client_session(0);
        waiter->ttl_ms = HOUR_MS;
        length = value_encode(record).length;
    }
    for (size_t i = 0; length < size; i++) {
        EXPECT(i < record->waiter_count);
        size_t more = size - length < HOLDER_MAX - NAME ? size - length : HOLDER_MAX - NAME;
        memset(record->waiters[i].holder + NAME, 'x', more);
        record->waiters[i].holder[NAME + more] = '\0';
        length += more;
    }
    return value_encode(record);
}

struct condition if_revision(uint64_t revision)
{
    struct stamp written = {.revision = revision, .epoch = suite_epoch_seen()};
    return if_write(&written);
}

struct condition if_write(const struct stamp *written)
{
    return (struct condition){.kind = IF_REVISION, .revision = stamp_order(written)};
}

struct condition if_grant(uint64_t token)
{
    return (struct condition){.kind = IF_GRANT, .token = token};
}

struct store_request reading(const char *key)
{
    return (struct store_request){.verb = VERB_STORE_READ, .key = key};
}

struct store_request swapping(const char *key, struct condition condition, struct value value)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = condition,
                                  .bytes = value.bytes,
                                  .length = value.length};
}

struct store_request deleting(const char *key, struct condition condition)
{
    return (struct store_request){.verb = VERB_STORE_DELETE, .key = key, .condition = condition};
}

struct store_request renewing(const char *key, uint64_t token, int64_t ttl_ms)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = if_grant(token),
                                  .ttl_ms = ttl_ms,
                                  .session = client_session(0)};
}

const struct store_reply *ask(unsigned client, struct store_request request)
{
    client_send(client, &request, 1);
    struct client_replies client_replies = client_receive(client);
    EXPECT(client_replies.count == 1);
    suite_note(client, &client_replies.list[0].reply);
    return &client_replies.list[0].reply;
}

uint64_t put(unsigned client, const char *key, struct condition condition, struct value value)
{
    const struct store_reply *reply = ask(client, swapping(key, condition, value));
    EXPECT(reply->result == REPLY_OK);
    EXPECT(reply->written.revision > 0);
    return reply->written.revision;
}

struct client_replies list_keys(unsigned client, const char *prefix)
{
    struct store_request request = {.verb = VERB_STORE_LIST, .key = prefix};
    client_send(client, &request, 1);
    struct client_replies client_replies = client_receive(client);
    EXPECT(client_replies.count > 0);
    const struct store_reply *end = &client_replies.list[--client_replies.count].reply;
    suite_note(client, end);
    EXPECT(end->result == REPLY_OK && !end->more && !end->present);
    for (size_t i = 0; i < client_replies.count; i++) {
        const struct store_reply *reply = &client_replies.list[i].reply;
        EXPECT(reply->result == REPLY_OK && reply->more && reply->present);
        EXPECT(reply->key != NULL && strncmp(reply->key, prefix, strlen(prefix)) == 0);
        EXPECT(reply->written.revision > 0);
    }
    return client_replies;
}

struct record *record_in(const struct store_reply *reply, const char *key)
{
    struct event event = {0};
    const char *why = NULL;
    translate_reply(reply, key, &seen, &event, &why);
    if (why != NULL)
        suite_fail(why);
    EXPECT(event.known);
    EXPECT(strcmp(seen.key, key) == 0);
    return &seen;
}

uint64_t token_in(const struct store_reply *reply, const char *key)
{
    const struct record *record = record_in(reply, key);
    EXPECT(record->grant_count > 0);
    return grant_token(&record->grants[0]);
}

bool has_value(const struct store_reply *reply, struct value value)
{
    return reply->present && reply->bytes != NULL && reply->length == value.length &&
           memcmp(reply->bytes, value.bytes, value.length) == 0;
}

void expect_conflict(const struct store_reply *reply, struct value standing, uint64_t revision)
{
    EXPECT(reply->result == REPLY_CONFLICT);
    EXPECT(reply->present == (standing.bytes != NULL));
    if (standing.bytes == NULL)
        return;
    EXPECT(has_value(reply, standing));
    EXPECT(reply->written.revision == revision);
}

void expect_stands(const char *key, struct value value, uint64_t revision)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        const struct store_reply *reply = ask(client, reading(key));
        EXPECT(reply->result == REPLY_OK);
        EXPECT(has_value(reply, value));
        EXPECT(reply->written.revision == revision);
    }
}

void expect_absent(const char *key)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        const struct store_reply *reply = ask(client, reading(key));
        EXPECT(reply->result == REPLY_OK);
        EXPECT(!reply->present);
    }
}
