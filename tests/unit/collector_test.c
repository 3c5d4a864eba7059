/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector with a toy driver: records in memory, in pages, some of them in use, some waiting
 * for a watermark; the driver replies at once, or the test does.
 */
#include "store/collector.h"

#include "process/host.h"
#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FREE "{\"leasehold\":1,\"key\":\"k\"}"
#define DONE                                                                             \
    "{\"leasehold\":2,\"key\":\"once:a\",\"cooling\":{\"since\":\"this\",\"length_ms\":" \
    "1000},\"once\":{\"payload\":\"\",\"request\":\"r\",\"watermark\":\"watermark:w\","  \
    "\"until\":\"17\"}}"
#define MARK(value)                                                                           \
    "{\"leasehold\":2,\"key\":\"watermark:w\",\"watermark\":{\"order\":\"number\",\"value\":" \
    "\"" value "\",\"moved\":\"this\"}}"

enum { PAGE = 2, MANY = 6 };

static const char held[] =
    "{\"leasehold\":1,\"key\":\"k\",\"grants\":[{\"holder\":\"h\",\"request\":\"r\","
    "\"session\":\"1\",\"mode\":\"exclusive\",\"granted\":\"this\",\"ttl_ms\":100000000}]}";
static struct collector collector;
static struct record scratch;
static const char *records[MANY]; /* NULL: not ours */
static uint64_t spaces[MANY];
static const char *marks[2]; /* by space */
static size_t page, lists, removals, reads, removed[MANY];
static int64_t removed_at_ms[MANY];
static enum collector_removal outcome;
static const char *trouble;
static bool holds_back; /* the driver does not reply */
static size_t count;

static void toy_list(void *owner, bool first)
{
    (void)owner;
    page = first ? 0 : page + 1;
    lists++;
    if (holds_back)
        return;
    size_t left = count > page * PAGE ? count - page * PAGE : 0;
    if (trouble != NULL)
        collector_on_error(&collector, trouble);
    else
        collector_on_page(&collector, left < PAGE ? left : PAGE, left > PAGE);
}

static bool toy_entry(void *owner, size_t index, struct collector_entry *out)
{
    const char *record = records[page * PAGE + index];
    (void)owner;
    if (record == NULL)
        return false;
    out->record = (struct stored_record){.bytes = record,
                                         .length = strlen(record),
                                         .written = {.revision = 5, .time_ms = 1000},
                                         .now_ms = 1000000};
    out->margin_ms = 1000;
    out->space = spaces[page * PAGE + index];
    return true;
}

static void toy_remove(void *owner, size_t index)
{
    (void)owner;
    removed_at_ms[removals] = host_boot_ms();
    removed[removals++] = page * PAGE + index;
    collector_on_removal(&collector, outcome);
}

static void toy_read(void *owner, const char *key)
{
    const char *mark = marks[collector.space];
    (void)owner;
    assert_string_equal(key, "watermark:w");
    reads++;
    collector_on_watermark(&collector, mark, mark != NULL ? strlen(mark) : 0);
}

static const struct collector_driver toy = {
    .list = toy_list, .remove = toy_remove, .read = toy_read, .entry = toy_entry};

static int begin(void **state)
{
    memset(records, 0, sizeof records);
    memset(spaces, 0, sizeof spaces);
    marks[0] = marks[1] = trouble = NULL;
    lists = removals = reads = count = 0;
    outcome = COLLECTOR_REMOVED;
    holds_back = false;
    return kit_open(state);
}

static int end(void **state)
{
    collector_done(&collector);
    return kit_close(state);
}

static void open_collector(unsigned rate)
{
    collector_init(&collector, &toy, NULL, kit_net, &scratch, /* seed= */ 7, rate);
}

static struct collection run(unsigned rate)
{
    struct collection out;
    open_collector(/* rate= */ 0);
    collector_run(&collector, rate, &out);
    return out;
}

static void it_removes_what_is_not_in_use(void **state)
{
    static const char *const all[] = {FREE, held, NULL, FREE, FREE};
    (void)state;
    memcpy(records, all, sizeof all);
    count = 5;
    struct collection tally = run(60000);
    assert_int_equal(tally.left, 3);
    assert_int_equal(tally.removed, 3);
    assert_string_equal(tally.why, "");
    assert_int_equal(lists, 3);
    assert_int_equal(removed[0], 0);
    assert_int_equal(removed[1], 3);
    assert_int_equal(removed[2], 4);
}

static void it_counts_without_removing(void **state)
{
    (void)state;
    records[0] = records[1] = FREE;
    count = 2;
    struct collection tally = run(/* rate= */ 0);
    assert_int_equal(tally.left, 2);
    assert_int_equal(removals, 0);
    kit_turn(/* ms= */ 20);
    assert_int_equal(lists, 1); /* no other round begins */
}

static void removals_keep_the_pace(void **state)
{
    (void)state;
    records[0] = records[1] = records[2] = FREE;
    count = 3;
    (void)run(/* rate= */ 3000); /* 20 ms */
    assert_int_equal(removals, 3);
    assert_true(removed_at_ms[1] - removed_at_ms[0] >= 20);
    assert_true(removed_at_ms[2] - removed_at_ms[1] >= 20);
}

static void an_id_waits_for_its_watermark(void **state)
{
    static const struct {
        const char *mark;
        unsigned left;
    } cases[] = {{NULL, 0}, {MARK("17"), 0}, {MARK("18"), 2}, {"nonsense", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        records[0] = records[1] = DONE;
        count = 2;
        marks[0] = cases[i].mark;
        reads = 0;
        assert_int_equal(run(/* rate= */ 0).left, cases[i].left);
        assert_int_equal(reads, 1); /* one read serves both */
        collector_done(&collector);
    }
    open_collector(/* rate= */ 0);
}

/* Clients with other names may use the same key for another watermark. */
static void watermarks_of_two_spaces_differ(void **state)
{
    (void)state;
    records[0] = records[1] = DONE;
    spaces[1] = 1;
    count = 2;
    marks[0] = MARK("99");
    assert_int_equal(run(/* rate= */ 0).left, 1);
    assert_int_equal(reads, 2);
}

static void a_record_in_use_again_is_counted(void **state)
{
    (void)state;
    records[0] = FREE;
    count = 1;
    outcome = COLLECTOR_IN_USE;
    struct collection tally = run(60000);
    assert_int_equal(tally.taken, 1);
    assert_int_equal(tally.removed, 0);
}

static void an_error_ends_the_round(void **state)
{
    (void)state;
    trouble = "the store is gone";
    count = 1;
    assert_string_equal(run(60000).why, "the store is gone");
}

/* Two collectors at once would only double the load. */
static void a_periodic_round_ends_at_another_collector(void **state)
{
    (void)state;
    records[0] = records[1] = FREE;
    count = 2;
    outcome = COLLECTOR_GONE;
    open_collector(/* rate= */ 60000);
    for (int64_t end_ms = host_boot_ms() + 5000; removals == 0 && host_boot_ms() < end_ms;)
        kit_turn(/* ms= */ 10);
    kit_turn(/* ms= */ 30);
    assert_int_equal(removals, 1);
}

static void a_driver_without_a_reply_is_not_asked_again(void **state)
{
    (void)state;
    holds_back = true;
    open_collector(/* rate= */ 60000);
    for (int64_t end_ms = host_boot_ms() + 5000; lists == 0 && host_boot_ms() < end_ms;)
        kit_turn(/* ms= */ 10);
    kit_turn(/* ms= */ 30);
    assert_int_equal(lists, 1);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(it_removes_what_is_not_in_use),
        STORY(it_counts_without_removing),
        STORY(removals_keep_the_pace),
        STORY(an_id_waits_for_its_watermark),
        STORY(watermarks_of_two_spaces_differ),
        STORY(a_record_in_use_again_is_counted),
        STORY(an_error_ends_the_round),
        STORY(a_periodic_round_ends_at_another_collector),
        STORY(a_driver_without_a_reply_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
