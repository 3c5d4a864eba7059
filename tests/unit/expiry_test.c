/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which records a store may remove, and when: by its own clock, and not before the watermark that
 * the record waits for has passed; and that a compaction of the log leaves out exactly these.
 */
#include "log_kit.h"
#include "store/expiry.h"
#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DONE(more)                                                                       \
    "{\"leasehold\":2,\"key\":\"once:a\",\"cooling\":{\"since\":\"this\",\"length_ms\":" \
    "1000},\"once\":{\"payload\":\"\",\"request\":\"r\"" more "}}"
#define AWAITING DONE(",\"watermark\":\"watermark:w\",\"until\":\"17\"")
#define CLAIMED(kind, version)                                                                  \
    "{\"leasehold\":" version ",\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"request\":\"r\"," \
    "\"session\":\"1\",\"mode\":\"exclusive\",\"granted\":\"this\",\"ttl_ms\":1000}]" kind "}"
/* Held, with a waiter. */
#define WAITED                                                                                   \
    "{\"leasehold\":1,\"key\":\"k\",\"next\":2,\"grants\":[{\"holder\":\"h\",\"request\":\"r\"," \
    "\"session\":\"1\",\"mode\":\"exclusive\",\"granted\":\"this\",\"ttl_ms\":1000}],"           \
    "\"places\":[{\"holder\":\"w\",\"request\":\"s\",\"session\":\"2\","                         \
    "\"mode\":\"exclusive\",\"ticket\":1,\"ttl_ms\":1000}]}"
#define MARK(value)                                                                           \
    "{\"leasehold\":2,\"key\":\"watermark:w\",\"watermark\":{\"order\":\"number\",\"value\":" \
    "\"" value "\",\"moved\":\"this\"}}"

static struct record scratch;
static const char *watermark; /* the current record, or NULL */

static struct stored_record standing_of(const char *bytes, int64_t now_ms)
{
    return (struct stored_record){.bytes = bytes,
                                  .length = bytes != NULL ? strlen(bytes) : 0,
                                  .written = {.revision = 7, .time_ms = 5000},
                                  .now_ms = now_ms};
}

static struct stored_record find(void *owner, const char *key)
{
    (void)owner;
    assert_string_equal(key, "watermark:w");
    return standing_of(watermark, 0);
}

static bool may(const char *bytes, int64_t now_ms)
{
    struct stored_record stored = standing_of(bytes, now_ms);
    return expiry_is_due(&stored, find, NULL, &scratch);
}

static void it_is_forgotten_after_its_time(void **state)
{
    (void)state;
    assert_false(may(DONE(""), 5999));
    assert_true(may(DONE(""), 6000));
    assert_false(may(DONE(""), 4000)); /* the clock was set back */
    assert_false(may(NULL, 9000));
    assert_false(may("not a record", 9000));
    struct stored_record untimed = standing_of(DONE(""), 9000);
    untimed.written.time_ms = TIME_UNKNOWN;
    assert_false(expiry_is_due(&untimed, find, NULL, &scratch));
}

static void a_claim_is_forgotten_and_a_lock_is_not(void **state)
{
    (void)state;
    assert_false(may(CLAIMED(",\"once\":{\"payload\":\"\"}", "2"), 5999));
    assert_true(may(CLAIMED(",\"once\":{\"payload\":\"\"}", "2"), 6000));
    assert_false(may(CLAIMED("", "1"), INT64_C(1) << 40));
    assert_false(may(MARK("17"), INT64_C(1) << 40));
}

static bool is_leftover(const char *bytes, int64_t now_ms)
{
    struct stored_record stored = standing_of(bytes, now_ms);
    return expiry_is_leftover(&stored, /* margin_ms= */ 300, find, NULL, &scratch);
}

static void records_of_dead_holders_are_leftover(void **state)
{
    static const int64_t day_ms = TTL_MAX_MS;
    (void)state;
    assert_false(is_leftover(CLAIMED("", "1"), 6299));
    assert_true(is_leftover(CLAIMED("", "1"), 6300));
    assert_false(is_leftover(CLAIMED("", "1"), 4000)); /* the clock was set back */
    assert_false(is_leftover(WAITED, day_ms + 6299));
    assert_true(is_leftover(WAITED, day_ms + 6300));
    assert_false(is_leftover(DONE(""), 6299));
    assert_true(is_leftover(DONE(""), 6300));
    assert_true(is_leftover("{\"leasehold\":1,\"key\":\"k\"}", 5300)); /* an empty record */
    assert_false(is_leftover("{\"leasehold\":1,\"key\":\"k\"}", 5299));
    assert_false(is_leftover(MARK("17"), INT64_C(1) << 40));
    assert_false(is_leftover("not a record", 9000));
    watermark = MARK("17");
    assert_false(is_leftover(AWAITING, 9000));
    watermark = MARK("18");
    assert_true(is_leftover(AWAITING, 9000));
}

static void an_id_waiting_for_a_watermark_is_kept(void **state)
{
    (void)state;
    struct stored_record stored = standing_of(AWAITING, 9000);
    watermark = NULL;
    assert_false(may(AWAITING, 9000));
    watermark = DONE("");
    assert_false(may(AWAITING, 9000));
    watermark = MARK("17");
    assert_false(may(AWAITING, 9000));
    assert_true(expiry_awaits_watermark(&stored, find, NULL, &scratch));
    watermark = MARK("18");
    assert_true(may(AWAITING, 9000));
    assert_false(may(AWAITING, 5999));
    assert_false(expiry_awaits_watermark(&stored, find, NULL, &scratch));
    stored = standing_of("not a record", 9000);
    assert_true(expiry_awaits_watermark(&stored, find, NULL, &scratch));
}

/* In the log. */

static struct fake_disk fake;
static unsigned asked;

/* Keys that begin with f, once a safe record is under "w". */
static bool forgets(void *owner, struct log *log, const struct log_record *record)
{
    struct log_record found;
    (void)owner;
    asked++;
    return record->key[0] == 'f' && log_find_synced(log, "w", &found) == LOG_OK &&
           found.type == LOG_PUT;
}

static void compact(struct log *log)
{
    assert_int_equal(kit_make_garbage(&fake.table, log), LOG_OK);
    assert_true(log_needs_maintenance(log));
    assert_int_equal(kit_tend(log), LOG_OK);
}

static void put(struct log *log, const char *key, const char *value)
{
    assert_int_equal(kit_put(&fake.table, log, key, value, &(struct stamp){0}), LOG_OK);
}

static void a_compaction_leaves_out_what_is_forgotten(void **state)
{
    (void)state;
    struct log *log = NULL;
    fake_disk_init(&fake);
    struct log_options options = kit_options(&fake.table, 1);
    options.may_drop = forgets;
    assert_int_equal(log_open(&options, kit_deadline(&fake.table), &log, NULL), LOG_OK);
    put(log, "f1", "old");
    put(log, "k", "kept");
    compact(log);
    assert_true(asked > 0);
    assert_true(kit_has(&fake.table, log, "f1", "old")); /* nothing is under "w" */
    put(log, "w", "here");
    compact(log);
    assert_true(kit_has(&fake.table, log, "f1", NULL));
    assert_true(kit_has(&fake.table, log, "k", "kept"));
    assert_true(kit_agrees(&fake.table, log));
    put(log, "f1", "new");
    assert_true(kit_has(&fake.table, log, "f1", "new"));
    log_close(&log);
    fake_disk_done(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_forgotten_after_its_time),
        cmocka_unit_test(a_claim_is_forgotten_and_a_lock_is_not),
        cmocka_unit_test(records_of_dead_holders_are_leftover),
        cmocka_unit_test(an_id_waiting_for_a_watermark_is_kept),
        cmocka_unit_test(a_compaction_leaves_out_what_is_forgotten),
    };
    return cmocka_run_group_tests_name("forget", tests, NULL, NULL);
}
