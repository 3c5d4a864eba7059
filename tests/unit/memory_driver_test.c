/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-memory store: every condition met and violated, conflicts that carry the current record,
 * growing revisions, lists, watches, and callers that submit again from inside their callback.
 */
#include "store/watchers.h"

#include "base/text.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void *store;
static int64_t clock_ms;
static struct record record;

/* The last reply, its bytes copied as they are only valid during the call. */
static struct {
    struct store_reply reply;
    char bytes[RECORD_MAX + 1];
    unsigned count;
} heard;

static int64_t now_of_test(void *owner)
{
    return *(const int64_t *)owner;
}

static int open_store(void **state)
{
    (void)state;
    struct store_callbacks site = {.clock = {.now_ms = now_of_test, .owner = &clock_ms}};
    struct text no_text = {0};
    clock_ms = 5000;
    memset(&heard, 0, sizeof heard);
    store = malloc(memory_driver.state_size);
    return store == NULL || !memory_driver.open(store, "memory:", &site, &no_text);
}

static int close_store(void **state)
{
    (void)state;
    memory_driver.close(store);
    free(store);
    return 0;
}

static void hear(void *caller, const struct store_reply *reply)
{
    (void)caller;
    heard.reply = *reply;
    heard.count++;
    heard.bytes[0] = '\0';
    if (reply->present) {
        assert_true(reply->length < sizeof heard.bytes);
        memcpy(heard.bytes, reply->bytes, reply->length);
        heard.bytes[reply->length] = '\0';
    }
}

static const struct store_reply *submit(struct store_request request)
{
    unsigned count = heard.count;
    memory_driver.submit(store, &request, hear, NULL);
    assert_int_equal(heard.count, count + 1);
    return &heard.reply;
}

static struct store_request swapping(const char *key, struct condition condition, const char *bytes)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = condition,
                                  .bytes = bytes,
                                  .length = strlen(bytes)};
}

static struct store_request deleting(const char *key, struct condition condition)
{
    return (struct store_request){.verb = VERB_STORE_DELETE, .key = key, .condition = condition};
}

static const struct condition if_absent = {.kind = IF_ABSENT};

static struct condition if_revision(uint64_t revision)
{
    return (struct condition){.kind = IF_REVISION, .revision = revision};
}

static struct condition if_grant(uint64_t token)
{
    return (struct condition){.kind = IF_GRANT, .token = token};
}

static const char *read_key(const char *key)
{
    const struct store_reply *reply =
        submit((struct store_request){.verb = VERB_STORE_READ, .key = key});
    assert_int_equal(reply->result, REPLY_OK);
    return reply->present ? heard.bytes : NULL;
}

#define GRANT(request)                                                                     \
    "{\"holder\":\"h\",\"request\":\"" request "\",\"session\":\"1\",\"mode\":\"shared\"," \
    "\"granted\":\"this\",\"ttl_ms\":1000}"
#define HELD "{\"leasehold\":1,\"key\":\"k\",\"grants\":[" GRANT("r") "]}"
#define AWAITED                                                                   \
    "{\"leasehold\":1,\"key\":\"k\",\"next\":2,\"grants\":[" GRANT(               \
        "r") "],"                                                                 \
             "\"places\":[{\"holder\":\"w\",\"request\":\"q\",\"session\":\"2\"," \
             "\"mode\":\"exclusive\",\"ticket\":1,\"ttl_ms\":9}]}"

/* Puts the bytes under "k"; returns the token of a grant that this write makes. */
static uint64_t put(const char *bytes)
{
    assert_int_equal(submit(swapping("k", if_absent, bytes))->result, REPLY_OK);
    return token_of(&heard.reply.written, 0);
}

static void assert_conflict(const struct store_reply *reply, const char *standing)
{
    assert_int_equal(reply->result, REPLY_CONFLICT);
    assert_int_equal(reply->present, standing != NULL);
    if (standing != NULL)
        assert_string_equal(heard.bytes, standing);
}

static void an_absent_key_is_created_once(void **state)
{
    (void)state;
    assert_null(read_key("k"));
    assert_int_equal(heard.reply.now_ms, 5000);
    const struct store_reply *reply = submit(swapping("k", if_absent, "one"));
    assert_int_equal(reply->result, REPLY_OK);
    assert_true(reply->present);
    assert_int_equal(reply->written.revision, 1);
    assert_int_equal(reply->written.time_ms, 5000);
    assert_string_equal(heard.bytes, "one");
    clock_ms = 6000;
    assert_conflict(submit(swapping("k", if_absent, "two")), "one");
    assert_int_equal(heard.reply.written.time_ms, 5000);
    assert_int_equal(heard.reply.now_ms, 6000);
    assert_string_equal(read_key("k"), "one");
}

static void a_revision_is_swapped_once(void **state)
{
    (void)state;
    (void)put("one");
    assert_int_equal(submit(swapping("k", if_revision(1), "two"))->result, REPLY_OK);
    assert_int_equal(heard.reply.written.revision, 2);
    assert_conflict(submit(swapping("k", if_revision(1), "three")), "two");
    assert_int_equal(heard.reply.written.revision, 2);
    assert_conflict(submit(swapping("other", if_revision(2), "x")), NULL);
    assert_null(read_key("other"));
}

static void a_delete_needs_its_revision(void **state)
{
    (void)state;
    (void)put("one");
    assert_conflict(submit(deleting("k", if_revision(2))), "one");
    assert_conflict(submit(deleting("k", if_absent)), "one");
    const struct store_reply *reply = submit(deleting("k", if_revision(1)));
    assert_int_equal(reply->result, REPLY_OK);
    assert_false(reply->present);
    assert_null(read_key("k"));
    assert_conflict(submit(deleting("k", if_revision(1))), NULL);
    assert_int_equal(submit(deleting("k", if_absent))->result, REPLY_OK);
}

static void revisions_grow_over_deletes_and_keys(void **state)
{
    (void)state;
    (void)put("one");
    (void)submit(deleting("k", if_revision(1)));
    (void)submit(swapping("other", if_absent, "x"));
    uint64_t between = heard.reply.written.revision;
    assert_true(between > 1);
    (void)put("two");
    assert_true(heard.reply.written.revision > between);
}

static void a_token_beside_a_revision_must_stand_too(void **state)
{
    (void)state;
    uint64_t token = put(HELD);
    struct condition condition = if_revision(1);
    condition.token = token + 1;
    assert_conflict(submit(swapping("k", condition, "x")), HELD);
    assert_conflict(submit(deleting("k", condition)), HELD);
    condition.token = token;
    clock_ms += 1000;
    assert_conflict(submit(swapping("k", condition, "x")), HELD); /* its lease has expired */
    clock_ms -= 1;
    condition.revision = 2;
    assert_conflict(submit(swapping("k", condition, "x")), HELD);
    condition.revision = 1;
    assert_int_equal(submit(swapping("k", condition, "x"))->result, REPLY_OK);
}

/* The core computes the end from the record: at the same revision no other check is needed. */
static void a_token_ends_at_the_given_time(void **state)
{
    (void)state;
    struct condition condition = if_revision(1);
    condition.token = put(HELD);
    condition.ends_ms = clock_ms + 10;
    clock_ms += 10;
    assert_conflict(submit(swapping("k", condition, "x")), HELD);
    assert_conflict(submit(deleting("k", condition)), HELD);
    clock_ms -= 1;
    condition.revision = 2;
    assert_conflict(submit(deleting("k", condition)), HELD);
    condition.revision = 1;
    assert_int_equal(submit(deleting("k", condition))->result, REPLY_OK);
}

static struct store_request renewing(uint64_t token)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = "k",
                                  .condition = if_grant(token),
                                  .ttl_ms = 1500,
                                  .session = 1};
}

static void a_grant_is_renewed_by_its_token_alone(void **state)
{
    (void)state;
    struct codec_error error;
    uint64_t token = put(AWAITED);
    (void)submit(swapping("other", if_absent, "x")); /* the revision grows */
    clock_ms += 900;
    assert_int_equal(submit(renewing(token))->result, REPLY_OK);
    assert_int_equal(record_decode(heard.bytes, heard.reply.length, &record, &error), DECODE_OK);
    record_resolve(&record, &heard.reply.written);
    assert_int_equal(record.grant_count, 1);
    assert_true(grant_token(&record.grants[0]) == token);
    assert_int_equal(record.grants[0].granted.time_ms, 5000);
    assert_int_equal(record.grants[0].renewed.time_ms, 5900);
    assert_int_equal(record.grants[0].ttl_ms, 1500);
    assert_int_equal(record.waiter_count, 1);
    clock_ms += 1499;
    assert_int_equal(submit(renewing(token))->result, REPLY_OK);
}

static void a_renewal_needs_a_grant_that_stands(void **state)
{
    (void)state;
    assert_conflict(submit(renewing(1 << 10)), NULL);
    uint64_t token = put(HELD);
    assert_conflict(submit(renewing(token + 1)), HELD);
    clock_ms += 1000;
    assert_conflict(submit(renewing(token)), HELD);
    clock_ms -= 1;
    assert_int_equal(submit(renewing(token))->result, REPLY_OK);
}

static void a_broken_grant_is_not_renewed(void **state)
{
    (void)state;
    static const char broken[] =
        "{\"leasehold\":1,\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"request\":\"r\","
        "\"session\":\"1\",\"mode\":\"shared\",\"broken\":true,\"granted\":\"this\","
        "\"ttl_ms\":1000}]}";
    uint64_t token = put(broken);
    assert_conflict(submit(renewing(token)), broken);
    assert_int_equal(submit(deleting("k", if_grant(token)))->result, REPLY_OK);
}

static void bytes_that_are_no_record_stand_for_no_grant(void **state)
{
    (void)state;
    uint64_t token = put("rubbish");
    assert_conflict(submit(renewing(token)), "rubbish");
    assert_conflict(submit(deleting("k", if_grant(token))), "rubbish");
}

static void a_grant_that_is_all_is_deleted_by_its_token(void **state)
{
    (void)state;
    uint64_t token = put(HELD);
    assert_conflict(submit(deleting("k", if_grant(token + 1))), HELD);
    assert_int_equal(submit(deleting("k", if_grant(token)))->result, REPLY_OK);
    assert_null(read_key("k"));
}

static void a_grant_with_somebody_behind_it_is_not_deleted(void **state)
{
    (void)state;
    uint64_t token = put(AWAITED);
    assert_conflict(submit(deleting("k", if_grant(token))), AWAITED);
}

/* Lists and watches. */

static unsigned listed;
static bool list_ended;

static void hear_listed(void *caller, const struct store_reply *reply)
{
    const char *prefix = caller;
    assert_int_equal(reply->result, REPLY_OK);
    assert_false(list_ended);
    list_ended = !reply->more;
    if (!reply->more) {
        assert_false(reply->present);
        return;
    }
    listed++;
    assert_int_equal(strncmp(reply->key, prefix, strlen(prefix)), 0);
    assert_int_equal(reply->length, strlen(reply->key));
    assert_memory_equal(reply->bytes, reply->key, reply->length);
    assert_true(reply->written.revision > 0);
}

static unsigned count_keys(char *prefix)
{
    struct store_request request = {.verb = VERB_STORE_LIST, .key = prefix};
    listed = 0;
    list_ended = false;
    memory_driver.submit(store, &request, hear_listed, prefix);
    assert_true(list_ended);
    return listed;
}

static void a_list_has_every_key_of_a_prefix(void **state)
{
    (void)state;
    char key[24], all[] = "", jobs[] = "job/", one[] = "job/17", none[] = "nothing";
    assert_int_equal(count_keys(all), 0);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "%s%d", i % 2 == 0 ? "job/" : "lock/", i);
        assert_int_equal(submit(swapping(key, if_absent, key))->result, REPLY_OK);
    }
    assert_int_equal(count_keys(all), 100);
    assert_int_equal(count_keys(jobs), 50);
    assert_int_equal(count_keys(one), 0);
    assert_int_equal(count_keys(none), 0);
    assert_string_equal(read_key("lock/99"), "lock/99");
    (void)submit(deleting("job/42", if_revision(43)));
    assert_int_equal(count_keys(jobs), 49);
}

static char watched[256];

static void hear_change(void *caller, const struct store_reply *reply)
{
    (void)caller;
    assert_int_equal(reply->result, REPLY_OK);
    assert_true(reply->more);
    if (reply->key == NULL)
        return; /* the watch is active */
    size_t length = strlen(watched);
    (void)snprintf(watched + length, sizeof watched - length, "%s=%.*s ", reply->key,
                   reply->present ? (int)reply->length : 1, reply->present ? reply->bytes : "-");
}

static void watch_prefix(const char *prefix)
{
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = prefix};
    watched[0] = '\0';
    memory_driver.submit(store, &request, hear_change, NULL);
}

static void a_watch_tells_every_change_of_its_prefix(void **state)
{
    (void)state;
    watch_prefix("a/");
    (void)submit(swapping("a/1", if_absent, "one"));
    (void)submit(swapping("b/1", if_absent, "other"));
    (void)submit(swapping("a/1", if_absent, "refused"));
    (void)submit(swapping("a/1", if_revision(1), "two"));
    (void)submit(deleting("a/1", if_revision(1)));
    (void)submit(deleting("a/1", if_revision(3)));
    (void)read_key("a/1");
    assert_string_equal(watched, "a/1=one a/1=two a/1=- ");
}

static void watches_have_an_end(void **state)
{
    (void)state;
    for (int i = 0; i < WATCHERS_MAX; i++)
        watch_prefix("k");
    const struct store_reply *reply =
        submit((struct store_request){.verb = VERB_STORE_WATCH, .key = "k"});
    assert_int_equal(reply->result, REPLY_TROUBLE);
    assert_false(reply->more);
}

/* A caller may submit from inside its callback: the store replies within the call. */
static void delete_in_callback(void *caller, const struct store_reply *reply)
{
    (void)caller;
    assert_true(reply->present);
    (void)submit(deleting("k", if_revision(reply->written.revision)));
}

static void a_callback_may_ask_again(void **state)
{
    (void)state;
    struct store_request request = swapping("k", if_absent, "one");
    watch_prefix("k");
    memory_driver.submit(store, &request, delete_in_callback, NULL);
    assert_null(read_key("k"));
    assert_string_equal(watched,
                        "k=- k=- "); /* the change that came first is delivered last, unchanged */
}

#define COOLS "{\"leasehold\":1,\"key\":\"k\",\"cooling\":{\"since\":\"this\",\"length_ms\":1000}}"

static struct store_request fleeting(const char *key, int64_t retention_ms)
{
    struct store_request request = swapping(key, if_absent, COOLS);
    request.retention_ms = retention_ms;
    return request;
}

static void an_expired_id_is_dropped_at_the_next_write(void **state)
{
    (void)state;
    assert_int_equal(submit(fleeting("a", 1000))->result, REPLY_OK);
    assert_int_equal(submit(fleeting("b", 0))->result, REPLY_OK);
    clock_ms += 999;
    assert_int_equal(submit(fleeting("c", 1))->result, REPLY_OK);
    assert_non_null(read_key("a"));
    clock_ms += 1;
    assert_int_equal(submit(fleeting("d", 0))->result, REPLY_OK);
    assert_null(read_key("a"));
    assert_null(read_key("c"));
    assert_non_null(read_key("b"));
}

static void a_few_at_a_time_and_in_order(void **state)
{
    (void)state;
    char key[16];
    unsigned left = 0;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(submit(fleeting(key, 100 + i))->result, REPLY_OK);
    }
    clock_ms += 1000;
    assert_int_equal(submit(fleeting("x", 0))->result, REPLY_OK);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        left += read_key(key) != NULL ? 1 : 0;
        assert_true(left > 0 || i < 4);
    }
    assert_int_equal(left, 16);
}

static void a_record_may_become_longer_and_shorter(void **state)
{
    (void)state;
    static char bytes[3000];
    static const size_t lengths[] = {10, 2999, 3, 500, 2000, 2999, 1};
    uint64_t revision = 0;
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct store_request write =
            swapping("k", i == 0 ? if_absent : if_revision(revision), "short");
        bytes[lengths[i] - 1] = (char)('0' + i);
        write.bytes = bytes;
        write.length = lengths[i];
        assert_int_equal(submit(write)->result, REPLY_OK);
        revision = heard.reply.written.revision;
        assert_non_null(read_key("k"));
        assert_int_equal(heard.reply.length, lengths[i]);
        assert_memory_equal(heard.bytes, bytes, lengths[i]);
    }
}

static void many_keys_are_found_while_the_table_grows(void **state)
{
    enum { KEYS = 3000 };
    char key[16];
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        assert_int_equal(submit(swapping(key, if_absent, key))->result, REPLY_OK);
    }
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        assert_string_equal(read_key(key), key);
        assert_int_equal(submit(swapping(key, if_absent, key))->result, REPLY_CONFLICT);
    }
    assert_null(read_key("key-x"));
}

int main(void)
{
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)
    const struct CMUnitTest tests[] = {
        STORE_TEST(an_absent_key_is_created_once),
        STORE_TEST(a_revision_is_swapped_once),
        STORE_TEST(a_delete_needs_its_revision),
        STORE_TEST(revisions_grow_over_deletes_and_keys),
        STORE_TEST(a_token_beside_a_revision_must_stand_too),
        STORE_TEST(a_token_ends_at_the_given_time),
        STORE_TEST(a_grant_is_renewed_by_its_token_alone),
        STORE_TEST(a_renewal_needs_a_grant_that_stands),
        STORE_TEST(a_broken_grant_is_not_renewed),
        STORE_TEST(bytes_that_are_no_record_stand_for_no_grant),
        STORE_TEST(a_grant_that_is_all_is_deleted_by_its_token),
        STORE_TEST(a_grant_with_somebody_behind_it_is_not_deleted),
        STORE_TEST(a_list_has_every_key_of_a_prefix),
        STORE_TEST(a_watch_tells_every_change_of_its_prefix),
        STORE_TEST(watches_have_an_end),
        STORE_TEST(a_callback_may_ask_again),
        STORE_TEST(an_expired_id_is_dropped_at_the_next_write),
        STORE_TEST(a_few_at_a_time_and_in_order),
        STORE_TEST(a_record_may_become_longer_and_shorter),
        STORE_TEST(many_keys_are_found_while_the_table_grows),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
