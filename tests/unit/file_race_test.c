/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races in the file store: a watcher that sleeps during a compaction, a process without free
 * descriptors, and writes that name a session that has died since the decision. All through the
 * driver and on a real disk; races in the log itself are in log_race_test.c.
 */
#include "file_kit.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    TIMEOUT_MS = 60000,
    LOOKS = 2000, /* until our thread is done, on a slow machine */
    FILL = 30,    /* this many large records make a compaction due, and leave no history */
    FILL_BYTES = 40000,
};

static struct record record; /* the record under "k", from the last reply */
static char encoded[RECORD_MAX];

static void keep_record(const struct store_reply *reply)
{
    struct event event;
    const char *why;
    translate_reply(reply, "k", &record, &event, &why);
}

static unsigned notices;

static void notice(void *owner, const char *key, const struct store_reply *stands)
{
    (void)owner;
    (void)stands;
    notices += strcmp(key, "k") == 0;
}

/* The driver does not interpret the bytes. */
static struct store_request putting(const char *key, const char *bytes, size_t length)
{
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = {.kind = IF_ABSENT},
                                  .bytes = bytes,
                                  .length = length};
}

static uint64_t put(void *store, const char *key)
{
    assert_int_equal(ask(store, putting(key, "{}", 2)), REPLY_OK);
    return heard.written.revision;
}

static void erase(void *store, const char *key, uint64_t revision)
{
    struct store_request request = {.verb = VERB_STORE_DELETE,
                                    .key = key,
                                    .condition = {.kind = IF_REVISION, .revision = revision}};
    assert_int_equal(ask(store, request), REPLY_OK);
}

static ino_t inode_of(const char *suffix)
{
    struct stat status;
    assert_int_equal(stat(beside(suffix), &status), 0);
    return status.st_ino;
}

/* Watches. */

static struct {
    unsigned puts, erasures;
    bool ended; /* notified that events may be missing */
} seen;

static void see(void *caller, const struct store_reply *reply)
{
    (void)caller;
    bool is_change = reply->result == REPLY_OK && reply->key != NULL;
    seen.puts += is_change && reply->present;
    seen.erasures += is_change && !reply->present;
    seen.ended = seen.ended || reply->result != REPLY_OK;
}

static void watch(void *store, const char *key)
{
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = key};
    memset(&seen, 0, sizeof seen);
    file_driver.submit(store, &request, see, NULL);
    file_driver.step(store);
}

static unsigned filled; /* keys */

/* Writes more than the existing size, until the log is another file, without that history. */
static void compact(void *store)
{
    static char bytes[FILL_BYTES], keys[4 * FILL][32];
    ino_t before = inode_of("");
    unsigned up_to = 2 * filled + FILL;
    memset(bytes, ' ', sizeof bytes);
    for (; filled < up_to; filled++) {
        (void)snprintf(keys[filled], sizeof keys[filled], "fill-%u", filled);
        struct store_request request = putting(keys[filled], bytes, sizeof bytes);
        file_driver.submit(store, &request, hear, NULL);
    }
    file_driver.step(store);
    assert_int_equal(heard.result, REPLY_OK);
    for (int i = 0; i < LOOKS && inode_of("") == before; i++) {
        (void)poll(NULL, 0, /* timeout= */ 10);
        file_driver.step(store);
    }
    assert_true(inode_of("") != before);
}

static void a_watch_over_a_compaction_reports_erasures(void **state)
{
    (void)state;
    void *watcher = open_store(1), *busy = open_store(2);
    uint64_t revision = put(busy, "lock");
    watch(watcher, "lock");
    erase(busy, "lock", revision);
    compact(busy);
    file_driver.step(watcher);
    assert_true(seen.erasures == 1 || seen.ended);
    close_store(busy);
    close_store(watcher);
}

/* The file in which it was erased is gone. */
static void a_watch_over_two_compactions_reports_it(void **state)
{
    (void)state;
    void *watcher = open_store(1), *busy = open_store(2);
    uint64_t revision = put(busy, "lock");
    watch(watcher, "lock");
    compact(busy);
    erase(busy, "lock", revision);
    compact(busy);
    file_driver.step(watcher);
    assert_true(seen.erasures == 1 || seen.ended);
    close_store(busy);
    close_store(watcher);
}

static bool is_readable(void *store, int timeout_ms)
{
    struct pollfd look = {.fd = file_driver.fd(store), .events = POLLIN};
    return poll(&look, 1, timeout_ms) > 0;
}

/* An idle process has the old file open, so that it still exists. */
static void a_watch_wakes_for_a_change_in_the_next_file(void **state)
{
    (void)state;
    void *idle = open_store(3), *watcher = open_store(1), *busy = open_store(2);
    watch(watcher, "lock");
    compact(busy);
    for (int i = 0; i < 100 && is_readable(watcher, /* timeout_ms= */ 10); i++)
        file_driver.step(watcher);
    assert_false(is_readable(watcher, /* timeout_ms= */ 0));
    assert_int_equal(seen.puts, 0);
    (void)put(busy, "lock");
    assert_true(is_readable(watcher, /* timeout_ms= */ 5000));
    file_driver.step(watcher);
    assert_int_equal(seen.puts, 1);
    assert_false(seen.ended);
    close_store(busy);
    close_store(watcher);
    close_store(idle);
}

/* Descriptors. */

/* Another process opens the store, with that many descriptors. */
static bool opens_with(unsigned descriptors)
{
    pid_t child = fork();
    if (child == 0) {
        int lowest = dup(STDIN_FILENO);
        (void)close(lowest);
        rlim_t most = (rlim_t)lowest + descriptors;
        struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
        _exit(setrlimit(RLIMIT_NOFILE, &limit) == 0 && try_open(7) != NULL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

static void few_descriptors_harm_no_other_process(void **state)
{
    (void)state;
    void *store = open_store(1);
    uint64_t last = put(store, "k");
    ino_t index = inode_of(".index");
    bool opened = false;
    unsigned tries = 0;
    for (; !opened && tries < 20; tries++) {
        char key[16];
        opened = opens_with(tries);
        (void)snprintf(key, sizeof key, "k-%u", tries);
        assert_true(put(store, key) == ++last); /* otherwise a process had to recover */
        assert_true(inode_of(".index") == index);
    }
    assert_true(opened && tries > 4);
    close_store(store);
}

/* Sessions that a write names. */

/* True if the decided record grants or offers the key to that session. */
static bool gives_to(uint64_t session)
{
    for (size_t i = 0; i < record.grant_count; i++)
        if (record.grants[i].granted.revision == THIS_WRITE && record.grants[i].session == session)
            return true;
    for (size_t i = 0; i < record.waiter_count; i++)
        if (record.waiters[i].offered && record.waiters[i].session == session)
            return true;
    return false;
}

/* Decides on the last record received; returns the write, which wakes that session. */
static struct store_request deciding(const struct request *request, const uint64_t *wake)
{
    struct store_facts facts = store_facts_at(&file_driver, "file:");
    struct view view = {.at = heard.written, .facts = &facts};
    assert_true(rules_decide(&record, request, &view).write);
    bool needed = record_needed(&record);
    return (struct store_request){
        .verb = needed ? VERB_STORE_SWAP : VERB_STORE_DELETE,
        .key = "k",
        .condition = {.kind = view.at.revision == 0 ? IF_ABSENT : IF_REVISION,
                      .revision = view.at.revision},
        .bytes = encoded,
        .length = needed ? record_encode(&record, encoded, sizeof encoded) : 0,
        .session = request->session,
        .wake = wake,
        .wake_count = wake != NULL ? 1 : 0,
        .given_count = wake != NULL && gives_to(*wake) ? 1 : 0};
}

static struct request verb_of(enum verb verb, uint64_t session)
{
    return (struct request){.verb = verb,
                            .key = "k",
                            .holder = "h",
                            .request = session == 1 ? "mine" : "another's",
                            .session = session,
                            .token = verb == VERB_RELEASE ? grant_token(&record.grants[0]) : 0,
                            .bound = true,
                            .waits = true,
                            .reason = "",
                            .ttl_ms = FILE_KIT_TTL_MS};
}

static void begin_record(void)
{
    memset(&heard, 0, sizeof heard);
    record_init(&record, "k");
}

/* Acquires the key, or a queue entry behind its holder. */
static void enter(void *store, uint64_t session)
{
    struct request request = verb_of(VERB_ACQUIRE, session);
    assert_int_equal(ask(store, deciding(&request, /* wake= */ NULL)), REPLY_OK);
}

static const uint64_t another = 77; /* session */

static void a_release_lets_in_who_lives(void **state)
{
    (void)state;
    void *store = open_store(1), *next = open_store(another);
    notices = 0;
    begin_record();
    enter(store, 1);
    enter(next, another);
    struct request request = verb_of(VERB_RELEASE, 1);
    assert_int_equal(ask(store, deciding(&request, &another)), REPLY_OK);
    assert_true(is_readable(next, /* timeout_ms= */ 5000));
    file_driver.step(next);
    assert_int_equal(notices, 1);
    close_store(next);
    close_store(store);
}

static void a_release_lets_in_nobody_who_died(void **state)
{
    (void)state;
    void *store = open_store(1), *next = open_store(another);
    begin_record();
    enter(store, 1);
    enter(next, another);
    uint64_t known = heard.written.revision;
    struct request request = verb_of(VERB_RELEASE, 1);
    struct store_request release = deciding(&request, &another);
    close_store(next);
    assert_int_equal(ask(store, release), REPLY_CONFLICT);
    assert_true(heard.written.revision == known);
    assert_int_equal(heard.dead_count, 1);
    assert_true(heard.dead == another);
    /* It decides again, by the reply, and is done. */
    release = deciding(&request, /* wake= */ NULL);
    assert_int_equal(release.verb, VERB_STORE_DELETE);
    assert_int_equal(ask(store, release), REPLY_OK);
    close_store(store);
}

/* These wake the processes that they remove, and grant nothing: no new decision is needed. */
static void a_break_may_wake_the_dead(void **state)
{
    (void)state;
    void *store = open_store(1), *holder = open_store(another);
    begin_record();
    enter(holder, another);
    struct request request = verb_of(VERB_BREAK, 1);
    struct store_request breaking = deciding(&request, &another);
    close_store(holder);
    assert_int_equal(ask(store, breaking), REPLY_OK);
    close_store(store);
}

static void a_cooldown_may_wake_the_dead(void **state)
{
    (void)state;
    void *store = open_store(1), *next = open_store(another);
    begin_record();
    enter(store, 1);
    enter(next, another);
    struct request request = verb_of(VERB_RELEASE, 1);
    request.cooldown_ms = FILE_KIT_TTL_MS;
    struct store_request release = deciding(&request, &another);
    close_store(next);
    assert_int_equal(release.verb, VERB_STORE_SWAP);
    assert_int_equal(ask(store, release), REPLY_OK);
    close_store(store);
}

static int begin(void **state)
{
    filled = 0;
    return file_kit_begin(state);
}

int main(void)
{
    file_kit_callbacks.timeout_ms = TIMEOUT_MS;
    file_kit_callbacks.notice = notice;
    file_kit_on_reply = keep_record;
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, file_kit_end)
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_watch_over_a_compaction_reports_erasures),
        FILE_TEST(a_watch_over_two_compactions_reports_it),
        FILE_TEST(a_watch_wakes_for_a_change_in_the_next_file),
        FILE_TEST(few_descriptors_harm_no_other_process),
        FILE_TEST(a_release_lets_in_who_lives),
        FILE_TEST(a_release_lets_in_nobody_who_died),
        FILE_TEST(a_break_may_wake_the_dead),
        FILE_TEST(a_cooldown_may_wake_the_dead),
    };
    return cmocka_run_group_tests_name("file_race", tests, NULL, NULL);
}
