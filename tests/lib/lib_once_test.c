/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are done once and watermarks through the public header: by threads, by processes that
 * are killed between claim and finish, and over a restart of the store.
 */
#include "lib_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lh_client *client;

static int open_file(void **state)
{
    if (kit_on_file(state) != 0)
        return 1;
    return lh_open(kit_url(), NULL, &client, NULL) == LH_OK ? 0 : 1;
}

static int close_file(void **state)
{
    lh_close(&client);
    return kit_done(state);
}

static void reopen(void)
{
    lh_close(&client);
    assert_int_equal(lh_open(kit_url(), NULL, &client, NULL), LH_OK);
}

static void a_claim_is_new_then_running_then_done(void **state)
{
    (void)state;
    struct lh_once mine = LH_ONCE_INIT, other = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    done.status = 3;
    done.result = "created #17";
    assert_int_equal(lh_seen(client, "a", NULL), LH_OK);
    assert_int_equal(lh_once_begin(client, "a", NULL, &mine, NULL), LH_OK);
    assert_true(mine.token > 0);
    assert_int_equal(lh_once_begin(client, "a", NULL, &other, &report), LH_BUSY);
    assert_int_equal(lh_once_status(client, "a", &other, &report), LH_BUSY);
    assert_true(report.holder[0] != '\0' && report.ends_in_ms > 0);
    assert_int_equal(lh_mark(client, "a", NULL, NULL), LH_BUSY);
    assert_int_equal(lh_once_renew(client, "a", mine.token, 60000, NULL), LH_OK);
    assert_int_equal(lh_once_finish(client, "a", mine.token + 1, &done, NULL), LH_STALE);
    reopen();
    assert_int_equal(lh_once_begin(client, "a", NULL, &other, NULL), LH_BUSY);
    assert_int_equal(lh_once_finish(client, "a", mine.token, &done, NULL), LH_OK);
    reopen();
    assert_int_equal(lh_once_begin(client, "a", NULL, &other, NULL), LH_DONE);
    assert_int_equal(other.status, 3);
    assert_string_equal(other.result, "created #17");
    assert_int_equal(lh_seen(client, "a", NULL), LH_DONE);
    assert_int_equal(lh_mark(client, "a", NULL, NULL), LH_DONE);
}

static void an_abandoned_one_is_new_again(void **state)
{
    (void)state;
    struct lh_once mine = LH_ONCE_INIT;
    assert_int_equal(lh_once_begin(client, "a", NULL, &mine, NULL), LH_OK);
    assert_int_equal(lh_once_abandon(client, "a", mine.token, NULL), LH_OK);
    assert_int_equal(lh_once_begin(client, "a", NULL, &mine, NULL), LH_OK);
}

static void a_lock_of_that_name_is_another_thing(void **state)
{
    (void)state;
    struct lh_lease *lease = NULL;
    assert_int_equal(lh_mark(client, "a", NULL, NULL), LH_OK);
    assert_int_equal(lh_acquire(client, "a", NULL, &lease, NULL), LH_OK);
    assert_int_equal(lh_release(&lease, NULL), LH_OK);
    assert_int_equal(lh_acquire(client, "once:a", NULL, &lease, NULL), LH_MISMATCH);
}

/* The kind of the record decides whether a key is done or cooling, not its name. */
static void a_lock_named_like_an_id_cools(void **state)
{
    (void)state;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.cooldown_ms = 60000;
    assert_int_equal(lh_acquire(client, "once:x", &options, &lease, NULL), LH_OK);
    assert_int_equal(lh_release(&lease, NULL), LH_OK);
    ASSERT_OUTCOME(lh_acquire(client, "once:x", NULL, &lease, &report), LH_COOLING, &report);
    ASSERT_OUTCOME(lh_peek(client, "once:x", NULL, &report), LH_COOLING, &report);
    assert_null(lease);
}

static void another_payload_is_a_mismatch(void **state)
{
    (void)state;
    struct lh_once mine = LH_ONCE_INIT;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    options.payload = "9f";
    assert_int_equal(lh_once_begin(client, "a", &options, &mine, NULL), LH_OK);
    options.payload = "1c";
    assert_int_equal(lh_once_begin(client, "a", &options, &mine, NULL), LH_MISMATCH);
}

static void an_error_names_its_reason(void **state)
{
    (void)state;
    char long_name[600];
    struct lh_once mine = LH_ONCE_INIT;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(lh_once_begin(client, long_name, NULL, &mine, NULL), LH_USAGE);
    assert_int_equal(lh_once_begin(client, "", NULL, &mine, NULL), LH_USAGE);
    assert_int_equal(lh_once_begin(client, NULL, NULL, &mine, NULL), LH_USAGE);
    assert_int_equal(lh_once_begin(client, "a", NULL, NULL, NULL), LH_USAGE);
    done.status = 256;
    assert_int_equal(lh_mark(client, "a", &done, NULL), LH_USAGE);
    done.status = 0;
    done.until = "7";
    assert_int_equal(lh_mark(client, "a", &done, NULL), LH_USAGE);
    done.until = NULL;
    done.result = "a\nb";
    assert_int_equal(lh_mark(client, "a", &done, NULL), LH_USAGE);
    assert_int_equal(lh_watermark_begin(client, "w", 0, &mark, NULL), LH_USAGE);
    assert_int_equal(lh_watermark_advance(client, "w", NULL, "", NULL), LH_USAGE);
}

static void a_watermark_moves_forward(void **state)
{
    (void)state;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    assert_int_equal(lh_watermark_begin(client, "w", 60000, &mark, NULL), LH_OK);
    assert_string_equal(mark.value, "");
    assert_true(mark.start_ms > INT64_C(1500000000) * 1000);
    assert_int_equal(lh_watermark_advance(client, "w", "", "9", NULL), LH_OK);
    assert_int_equal(lh_watermark_advance(client, "w", "9", "10", NULL), LH_OK);
    assert_int_equal(lh_watermark_advance(client, "w", "9", "11", NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance(client, "w", "9", "10", NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance_id(client, "w", "9.0", "10", "r", NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance(client, "w", "10", "9", NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance(client, "w", "10", "x", NULL), LH_MISMATCH);
    reopen();
    assert_int_equal(lh_watermark_begin(client, "w", 60000, &mark, NULL), LH_OK);
    assert_string_equal(mark.value, "10");
    assert_int_equal(lh_watermark_set(client, "w", "3", "read again", NULL), LH_OK);
    assert_int_equal(lh_watermark_begin(client, "w", 60000, &mark, NULL), LH_OK);
    assert_string_equal(mark.value, "3");
    assert_int_equal(lh_watermark_advance_id(client, "w", "3", "4", "r", NULL), LH_OK);
    reopen();
    assert_int_equal(lh_watermark_advance_id(client, "w", "3", "4", "r", NULL), LH_OK);
    assert_int_equal(lh_watermark_advance_id(client, "w", "3", "4", "s", NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance_id(client, "w", "3", "4", NULL, NULL), LH_STALE);
    assert_int_equal(lh_watermark_advance_id(client, "w", "4", "5", "", NULL), LH_USAGE);
}

enum { RACERS = 6, RACER_TRIES = 25 };

/* Reads the number and tries to add one, as a poller does; returns the number of successes. */
static int race(void)
{
    struct lh_client *own = NULL;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    char next[LH_POSITION_SIZE];
    int wins = 0;
    if (lh_open(kit_url(), NULL, &own, NULL) != LH_OK)
        return 255;
    for (int i = 0; i < RACER_TRIES; i++) {
        if (lh_watermark_begin(own, "race", 1, &mark, NULL) != LH_OK)
            return 255;
        (void)snprintf(next, sizeof next, "%ld", strtol(mark.value, NULL, 10) + 1);
        enum lh_outcome outcome = lh_watermark_advance(own, "race", mark.value, next, NULL);
        if (outcome != LH_OK && outcome != LH_STALE)
            return 255;
        wins += outcome == LH_OK ? 1 : 0;
    }
    lh_close(&own);
    return wins;
}

static void racing_increments_are_all_counted(void **state)
{
    (void)state;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    pid_t racers[RACERS];
    int wins = 0, status;
    lh_close(&client);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = fork();
        assert_true(racers[i] >= 0);
        if (racers[i] == 0)
            _exit(race());
    }
    for (int i = 0; i < RACERS; i++) {
        assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= RACER_TRIES);
        wins += WEXITSTATUS(status);
    }
    reopen();
    assert_int_equal(lh_watermark_begin(client, "race", 1, &mark, NULL), LH_OK);
    assert_int_equal(strtol(mark.value, NULL, 10), wins);
}

static void memory_has_a_cap_and_says_so(void **state)
{
    (void)state;
    struct lh_client *memory = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_once mine = LH_ONCE_INIT;
    struct lh_completion brief = LH_COMPLETION_INIT;
    brief.keep_ms = 1;
    assert_int_equal(lh_open("memory:?ids=many", NULL, &memory, NULL), LH_UNAVAILABLE);
    assert_int_equal(lh_open("memory:?cap=2", NULL, &memory, NULL), LH_UNAVAILABLE);
    assert_int_equal(lh_open("memory:?ids=2", NULL, &memory, NULL), LH_OK);
    assert_int_equal(lh_mark(memory, "a", NULL, NULL), LH_OK);
    assert_int_equal(lh_mark(memory, "b", &brief, NULL), LH_OK);
    kit_sleep_ms(5); /* expired ids make room */
    assert_int_equal(lh_once_begin(memory, "c", NULL, &mine, NULL), LH_OK);
    ASSERT_OUTCOME(lh_mark(memory, "d", NULL, &report), LH_UNAVAILABLE, &report);
    assert_non_null(strstr(report.text, "keeps 2 ids"));
    assert_int_equal(lh_mark(memory, "a", NULL, NULL), LH_DONE);
    assert_int_equal(lh_once_finish(memory, "c", mine.token, &brief, NULL), LH_OK);
    kit_sleep_ms(5);
    assert_int_equal(lh_mark(memory, "d", NULL, NULL), LH_OK);
    lh_close(&memory);
}

/* Many threads of this and other processes claim one id. */
enum { THREADS = 30, PROCESSES = 3, ROUNDS = 5 };

struct crowd {
    struct lh_client *client;
    const char *id;
    unsigned claimed, notify, wrong;
    pthread_mutex_t lock;
};

static void *claim(void *user)
{
    struct crowd *crowd = user;
    struct lh_once mine = LH_ONCE_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    done.result = "the result";
    enum lh_outcome outcome = lh_once_begin(crowd->client, crowd->id, NULL, &mine, NULL);
    bool finished = outcome != LH_OK ||
                    lh_once_finish(crowd->client, crowd->id, mine.token, &done, NULL) == LH_OK;
    bool notify =
        outcome == LH_BUSY || (outcome == LH_DONE && strcmp(mine.result, "the result") == 0);
    (void)pthread_mutex_lock(&crowd->lock);
    crowd->claimed += outcome == LH_OK ? 1 : 0;
    crowd->notify += notify ? 1 : 0;
    crowd->wrong += finished && (outcome == LH_OK || notify) ? 0 : 1;
    (void)pthread_mutex_unlock(&crowd->lock);
    return NULL;
}

/* The number of new claims; 99 if a call had a wrong outcome. */
static int crowd_at(const char *id)
{
    pthread_t threads[THREADS];
    struct crowd crowd = {.id = id, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (lh_open(kit_url(), NULL, &crowd.client, NULL) != LH_OK)
        return 99;
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, claim, &crowd) != 0)
            abort();
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    lh_close(&crowd.client);
    return crowd.wrong > 0 ? 99 : (int)crowd.claimed;
}

static void of_all_claims_one_is_new(void **state)
{
    (void)state;
    lh_close(&client); /* its thread must not exist at the fork */
    for (int round = 0; round < ROUNDS; round++) {
        char id[32];
        pid_t children[PROCESSES];
        int claimed = 0;
        (void)snprintf(id, sizeof id, "round %d", round);
        for (unsigned i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            if (children[i] == 0)
                _exit(crowd_at(id));
        }
        for (unsigned i = 0; i < PROCESSES; i++) {
            int status = 0;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_true(WIFEXITED(status));
            claimed += WEXITSTATUS(status);
        }
        assert_int_equal(claimed, 1);
    }
    assert_int_equal(lh_open(kit_url(), NULL, &client, NULL), LH_OK);
}

/* Killed between claim and finish: the id is claimed again after the lease, and done once. */
static void a_killed_claimers_id_is_claimed_again(void **state)
{
    (void)state;
    struct lh_once mine = LH_ONCE_INIT;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    int pipes[2];
    uint64_t token = 0;
    options.ttl_ms = 300;
    lh_close(&client);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lh_client *own = NULL;
        if (lh_open(kit_url(), NULL, &own, NULL) == LH_OK &&
            lh_once_begin(own, "a", &options, &mine, NULL) == LH_OK)
            (void)!write(pipes[1], &mine.token, sizeof mine.token);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(pipes[0], &token, sizeof token), sizeof token);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    assert_int_equal(lh_open(kit_url(), NULL, &client, NULL), LH_OK);
    options.wait_ms = 20000;
    options.ttl_ms = 60000;
    assert_int_equal(lh_once_begin(client, "a", &options, &mine, NULL), LH_OK);
    assert_true(mine.token > token);
    assert_int_equal(lh_once_finish(client, "a", token, NULL, NULL), LH_STALE);
    assert_int_equal(lh_once_finish(client, "a", mine.token, NULL, NULL), LH_OK);
    assert_int_equal(lh_once_finish(client, "a", token, NULL, NULL), LH_STALE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_file, close_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_claim_is_new_then_running_then_done),
        CASE(an_abandoned_one_is_new_again),
        CASE(a_lock_of_that_name_is_another_thing),
        CASE(a_lock_named_like_an_id_cools),
        CASE(another_payload_is_a_mismatch),
        CASE(an_error_names_its_reason),
        CASE(a_watermark_moves_forward),
        CASE(racing_increments_are_all_counted),
        CASE(memory_has_a_cap_and_says_so),
        CASE(of_all_claims_one_is_new),
        CASE(a_killed_claimers_id_is_claimed_again),
    };
    return cmocka_run_group_tests_name("lib_once", tests, NULL, NULL);
}
