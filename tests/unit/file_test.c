/* SPDX-License-Identifier: Apache-2.0 */
/* The file store for its users: what it refuses and how, a full disk, forks, and live sessions.
 * Cases for all drivers are in tests/conformance, those of the log itself in log_test.c. */
#include "file_kit.h"
#include "process/host.h"
#include "store/log/log_format.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct record record;
static char encoded[RECORD_MAX];

/* A grant of this session, as the core writes it. */
static struct store_request granting(const char *key, uint64_t session)
{
    record_init(&record, key);
    struct request request = {.verb = VERB_ACQUIRE,
                              .key = key,
                              .holder = "h",
                              .request = "r",
                              .session = session,
                              .bound = true,
                              .ttl_ms = FILE_KIT_TTL_MS};
    struct store_facts facts = store_facts_at(&file_driver, "file:");
    struct view view = {.at = {.time_ms = 1}, .facts = &facts};
    struct verdict verdict = rules_decide(&record, &request, &view);
    assert_int_equal(verdict.kind, VERDICT_GRANTED);
    return (struct store_request){.verb = VERB_STORE_SWAP,
                                  .key = key,
                                  .condition = {.kind = IF_ABSENT},
                                  .bytes = encoded,
                                  .length = record_encode(&record, encoded, sizeof encoded)};
}

static struct store_request by_token(enum store_verb verb, const char *key, uint64_t token)
{
    return (struct store_request){.verb = verb,
                                  .key = key,
                                  .condition = {.kind = IF_GRANT, .token = token},
                                  .ttl_ms = FILE_KIT_TTL_MS,
                                  .session = 1,
                                  .bound = true};
}

static void write_file(const void *bytes, size_t length)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), length);
    assert_int_equal(close(file), 0);
}

static void flip(uint64_t offset)
{
    unsigned char byte;
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(file, &byte, 1, (off_t)offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)offset), 1);
    assert_int_equal(close(file), 0);
}

static void a_foreign_file_is_refused_and_left_alone(void **state)
{
    (void)state;
    char bytes[64] = {0};
    write_file("somebody's notes\n", 17);
    assert_null(try_open(1));
    assert_non_null(strstr(words, "not a leasehold log"));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(file, bytes, sizeof bytes), 17);
    assert_string_equal(bytes, "somebody's notes\n");
    assert_int_equal(close(file), 0);
    assert_int_not_equal(access(beside(".lock"), F_OK), 0);
}

static void a_newer_version_is_refused_with_both(void **state)
{
    (void)state;
    unsigned char sector[LOG_START] = {0};
    struct log_header header = {
        .version = 7, .generation = 1, .slots = 64, .length = 8192, .tail = LOG_START};
    log_header_encode(&header, sector);
    write_file(sector, sizeof sector);
    assert_null(try_open(1));
    assert_non_null(strstr(words, "version 7"));
    assert_non_null(strstr(words, "supported: 1"));
}

static void damage_is_refused_with_its_offset(void **state)
{
    (void)state;
    void *store = open_store(1);
    (void)ask(store, granting("a", 1));
    (void)ask(store, granting("b", 1));
    (void)ask(store, granting("c", 1));
    close_store(store);
    flip(LOG_START + 20);
    assert_int_equal(unlink(beside(".lock")), 0); /* as after a reboot */
    assert_null(try_open(1));
    assert_non_null(strstr(words, "damage at offset 4096"));
    flip(LOG_START + 20);
    store = open_store(1);
    (void)ask(store, (struct store_request){.verb = VERB_STORE_READ, .key = "c"});
    assert_true(heard.present);
    close_store(store);
}

static void a_torn_tail_is_cut_with_a_warning(void **state)
{
    (void)state;
    void *store = open_store(1);
    (void)ask(store, granting("a", 1));
    close_store(store);
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(file, "torn", 4, 16384), 4);
    assert_int_equal(close(file), 0);
    assert_int_equal(unlink(beside(".lock")), 0);
    store = open_store(1);
    assert_non_null(strstr(words, "a torn tail was cut"));
    (void)ask(store, (struct store_request){.verb = VERB_STORE_READ, .key = "a"});
    assert_true(heard.present);
    close_store(store);
    store = open_store(1);
    assert_string_equal(words, "");
    close_store(store);
}

static void without_a_path_it_says_what_to_write(void **state)
{
    (void)state;
    char kept[sizeof url];
    memcpy(kept, url, sizeof url);
    (void)snprintf(url, sizeof url, "file:");
    assert_null(try_open(1));
    assert_non_null(strstr(words, "needs a path"));
    memcpy(url, kept, sizeof url);
}

/* A limit on files acts as a full disk, and also raises SIGXFSZ. */
static void a_full_disk_refuses_only_what_is_new(void **state)
{
    (void)state;
    void *store = open_store(1);
    (void)ask(store, granting("held", 1));
    uint64_t token = token_of(&heard.written, /* n= */ 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)status.st_size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);

    unsigned granted = 0;
    char key[16];
    do {
        (void)snprintf(key, sizeof key, "key-%u", granted);
        (void)ask(store, granting(key, 1));
        granted += heard.result == REPLY_OK;
    } while (heard.result == REPLY_OK && granted < 100000);
    assert_int_equal(heard.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, path));
    assert_non_null(strstr(heard.why, "no room on the disk"));
    for (int i = 0; i < 100; i++) {
        (void)ask(store, by_token(VERB_STORE_SWAP, "held", token));
        assert_int_equal(heard.result, REPLY_OK);
    }
    (void)ask(store, by_token(VERB_STORE_DELETE, "held", token));
    assert_int_equal(heard.result, REPLY_OK);
    (void)ask(store, granting("one-more", 1));
    assert_int_equal(heard.result, REPLY_TROUBLE);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)ask(store, granting("one-more", 1));
    assert_int_equal(heard.result, REPLY_OK);
    close_store(store);
}

static void a_forked_child_holds_nothing(void **state)
{
    (void)state;
    void *store = open_store(1);
    (void)ask(store, granting("k", 1));
    pid_t child = fork();
    if (child == 0) {
        (void)ask(store, (struct store_request){.verb = VERB_STORE_READ, .key = "k"});
        bool notify = heard.result == REPLY_TROUBLE && strstr(heard.why, "forked") != NULL;
        file_driver.close(store);
        _exit(notify ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)ask(store, (struct store_request){.verb = VERB_STORE_READ, .key = "k"});
    assert_int_equal(heard.result, REPLY_OK);
    close_store(store);
}

/* A process with a session of its own, which starts a command that inherits its liveness. */
static pid_t start_holder(int *out_command)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t holder = fork();
    if (holder == 0) {
        void *store = open_store(77);
        (void)ask(store, granting("k", 77));
        int alive = file_driver.liveness(store);
        pid_t command = fork();
        if (command == 0) {
            (void)alive; /* inherited by being open */
            for (;;)
                (void)pause();
        }
        (void)close(alive);
        (void)!write(pipes[1], &command, sizeof command);
        for (;;)
            (void)pause();
    }
    pid_t command = 0;
    assert_int_equal(read(pipes[0], &command, sizeof command), sizeof command);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    *out_command = command;
    return holder;
}

static bool holder_is_dead(void *store)
{
    (void)ask(store, (struct store_request){.verb = VERB_STORE_READ, .key = "k"});
    assert_int_equal(heard.result, REPLY_OK);
    assert_true(heard.present);
    return heard.dead_count == 1;
}

static void a_killed_holders_command_keeps_its_session_alive(void **state)
{
    (void)state;
    int command;
    pid_t holder = start_holder(&command);
    void *store = open_store(1);
    assert_false(holder_is_dead(store));
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    assert_false(holder_is_dead(store));
    assert_int_equal(kill(command, SIGKILL), 0);
    bool dead = false;
    int64_t until_ms = host_boot_ms() + FILE_KIT_TTL_MS;
    while (!dead && host_boot_ms() < until_ms)
        dead = holder_is_dead(store);
    assert_true(dead);
    close_store(store);
}

/* The holder dies between the waiter's read and its write: nothing else would report that. */
static void the_reply_that_queues_names_a_dead_holder(void **state)
{
    (void)state;
    void *holder = open_store(1), *store = open_store(2);
    assert_int_equal(ask(holder, granting("k", 1)), REPLY_OK);
    struct stamp granted = heard.written;
    record_resolve(&record, &granted);
    struct waiter *waiter = record_add_waiter(&record);
    (void)strcpy(waiter->holder, "w");
    (void)strcpy(waiter->request, "w");
    waiter->session = 2;
    waiter->ttl_ms = FILE_KIT_TTL_MS;
    struct store_request queueing = {
        .verb = VERB_STORE_SWAP,
        .key = "k",
        .session = 2,
        .condition = {.kind = IF_REVISION, .revision = stamp_order(&granted)},
        .bytes = encoded,
        .length = record_encode(&record, encoded, sizeof encoded)};
    summarize_record(&record, 2, &queueing.summary);
    close_store(holder);
    assert_int_equal(ask(store, queueing), REPLY_OK);
    assert_int_equal(heard.dead_count, 1);
    assert_int_equal(heard.dead, 1);
    close_store(store);
}

static void two_processes_cannot_be_one_session(void **state)
{
    (void)state;
    void *store = open_store(5);
    assert_null(try_open(5));
    assert_non_null(strstr(words, "session"));
    close_store(store);
    close_store(open_store(5));
}

static void a_removed_lock_file_stops_those_who_knew_it(void **state)
{
    (void)state;
    void *store = open_store(1);
    (void)ask(store, granting("k", 1));
    assert_int_equal(unlink(beside(".lock")), 0);
    void *other = open_store(2);
    (void)ask(store, granting("l", 1));
    assert_int_equal(heard.result, REPLY_TROUBLE);
    assert_non_null(strstr(heard.why, "replaced or removed"));
    /* The holder can no longer be checked: it counts as alive, until its lease ends. */
    (void)ask(other, (struct store_request){.verb = VERB_STORE_READ, .key = "k"});
    assert_true(heard.present);
    assert_int_equal(heard.dead_count, 0);
    close_store(other);
    close_store(store);
}

int main(void)
{
    file_kit_callbacks.timeout_ms = 1000;
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, file_kit_begin, file_kit_end)
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_foreign_file_is_refused_and_left_alone),
        FILE_TEST(a_newer_version_is_refused_with_both),
        FILE_TEST(damage_is_refused_with_its_offset),
        FILE_TEST(a_torn_tail_is_cut_with_a_warning),
        FILE_TEST(without_a_path_it_says_what_to_write),
        FILE_TEST(a_full_disk_refuses_only_what_is_new),
        FILE_TEST(a_forked_child_holds_nothing),
        FILE_TEST(a_killed_holders_command_keeps_its_session_alive),
        FILE_TEST(the_reply_that_queues_names_a_dead_holder),
        FILE_TEST(two_processes_cannot_be_one_session),
        FILE_TEST(a_removed_lock_file_stops_those_who_knew_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
