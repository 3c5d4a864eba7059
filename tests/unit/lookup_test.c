/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name resolution: one address after the other, look-ups that hang, abandoned look-ups, and too
 * many of them. The resolver is the test's own; the sockets are real.
 */
#include "stream_kit.h"

#include "process/host.h"
#include "net/lookup.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct party party;
static int listening = -1, full = -1;
static uint16_t port, full_port;
static sem_t hanging;
static atomic_int begun, finished, lists, unmasked;

static struct addrinfo *new_address(uint16_t at, struct addrinfo *next)
{
    struct addrinfo *list = calloc(1, sizeof *list);
    struct sockaddr_in *address = calloc(1, sizeof *address);
    *address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(at)};
    *list = (struct addrinfo){.ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_addr = (struct sockaddr *)address,
                              .ai_addrlen = sizeof *address,
                              .ai_next = next};
    return list;
}

static int look(const char *name, struct addrinfo **out)
{
    if (strcmp(name, "hangs.example") == 0)
        while (sem_wait(&hanging) != 0) {
        }
    if (strcmp(name, "none.example") == 0)
        return EAI_NONAME;
    if (strcmp(name, "tired.example") == 0)
        return EAI_AGAIN;
    *out = new_address(port, NULL);
    if (strcmp(name, "second.example") == 0) /* the first address refuses */
        *out = new_address(/* at= */ 1, *out);
    if (strcmp(name, "silent.example") == 0)
        *out = new_address(full_port, *out);
    atomic_fetch_add(&lists, 1);
    return 0;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
void __wrap_freeaddrinfo(struct addrinfo *list);

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    sigset_t mask;
    (void)service;
    if ((hints->ai_flags & AI_NUMERICHOST) != 0)
        return EAI_NONAME;
    atomic_fetch_add(&begun, 1);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGTERM) != 1 || sigismember(&mask, SIGCHLD) != 1)
        atomic_fetch_add(&unmasked, 1);
    int result = look(name, out);
    atomic_fetch_add(&finished, 1);
    return result;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the linker wants it so */
void __wrap_freeaddrinfo(struct addrinfo *list)
{
    atomic_fetch_sub(&lists, 1);
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;
        free(list->ai_addr);
        free(list);
        list = next;
    }
}

static int begin(void **state)
{
    memset(&party, 0, sizeof party);
    atomic_store(&begun, 0);
    atomic_store(&finished, 0);
    listening = kit_listen(AF_INET, &port);
    full = kit_listen(AF_INET, &full_port);
    return sem_init(&hanging, 0, 0) == 0 ? kit_open(state) : -1;
}

static void settle(atomic_int *count, int wanted)
{
    for (int i = 0; i < 5000 && atomic_load(count) != wanted; i++)
        kit_turn(/* ms= */ 1);
    assert_int_equal(atomic_load(count), wanted);
}

static int finish(void **state)
{
    stream_free(&party.stream);
    settle(&finished, atomic_load(&begun));
    settle(&lists, 0); /* nothing that was found is left over */
    assert_int_equal(atomic_load(&unmasked), 0);
    (void)close(listening);
    (void)close(full);
    return kit_close(state);
}

static void open_name(const char *name, int64_t timeout_ms)
{
    struct stream_target target = kit_target(port);
    target.host = name;
    target.timeout_ms = timeout_ms;
    party_open(&party, &target);
}

static void the_next_address_is_tried(void **state)
{
    (void)state;
    open_name("second.example", /* timeout_ms= */ 5000);
    assert_true(kit_until(&party.opened));
    (void)close(kit_accept(listening));
}

static void a_silent_address_uses_up_its_share_only(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(full_port)};
    int guests[2];
    (void)state;
    /* A full backlog drops connections: no refusal, no reply. */
    assert_int_equal(listen(full, 0), 0);
    for (size_t i = 0; i < 2; i++) {
        guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(guests[i], (struct sockaddr *)&address, sizeof address);
        kit_turn(/* ms= */ 20);
    }
    int64_t began_ms = host_boot_ms();
    open_name("silent.example", /* timeout_ms= */ 1000);
    assert_true(kit_until(&party.opened));
    assert_true(host_boot_ms() - began_ms >= 499);
    for (size_t i = 0; i < 2; i++)
        (void)close(guests[i]);
}

static void a_name_that_is_none_is_said(void **state)
{
    (void)state;
    open_name("none.example", /* timeout_ms= */ 5000);
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, "none.example:"));
    assert_non_null(strstr(party.why, "no such host"));
    stream_free(&party.stream);
    memset(&party, 0, sizeof party);
    party.frees_on_end = true; /* and reads the text after that */
    open_name("tired.example", /* timeout_ms= */ 5000);
    assert_true(kit_until(&party.ended));
    assert_non_null(strstr(party.why, gai_strerror(EAI_AGAIN)));
}

static void a_hanging_look_up_holds_up_nobody(void **state)
{
    (void)state;
    int64_t began_ms = host_boot_ms();
    open_name("hangs.example", /* timeout_ms= */ 100);
    assert_true(kit_until(&party.ended));
    assert_true(host_boot_ms() - began_ms >= 100);
    assert_int_equal(party.end, STREAM_CUT);
    assert_int_equal(atomic_load(&finished), 0);
    assert_int_equal(sem_post(&hanging), 0); /* and its result is discarded */
    settle(&finished, 1);
    assert_int_equal(party.ended, 1);
}

static void a_cancelled_lookup_reports_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < LOOKUPS_MOST; i++) {
        open_name("hangs.example", /* timeout_ms= */ 5000);
        stream_free(&party.stream);
    }
    settle(&begun, LOOKUPS_MOST);
    for (int i = 0; i < LOOKUPS_MOST; i++)
        assert_int_equal(sem_post(&hanging), 0);
    settle(&finished, LOOKUPS_MOST);
    assert_int_equal(party.opened + party.ended, 0);
}

/* The result comes at the same moment as the cancellation. */
static void letting_go_races_with_the_answer(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        open_name(i % 2 == 0 ? "second.example" : "none.example", /* timeout_ms= */ 5000);
        if (i % 3 != 0)
            kit_turn(/* ms= */ i % 2);
        stream_free(&party.stream);
        settle(&finished, i + 1);
        party.opened = party.ended = 0;
    }
}

static void too_many_are_refused_and_not_queued(void **state)
{
    struct party crowd[LOOKUPS_MOST] = {0};
    struct stream_target target = kit_target(port);
    (void)state;
    target.host = "hangs.example";
    for (int i = 0; i < LOOKUPS_MOST; i++)
        party_open(&crowd[i], &target);
    open_name("second.example", /* timeout_ms= */ 5000);
    assert_true(kit_until(&party.ended));
    assert_int_equal(party.end, STREAM_CUT);
    assert_non_null(strstr(party.why, "too many look-ups"));
    for (int i = 0; i < LOOKUPS_MOST; i++)
        assert_int_equal(sem_post(&hanging), 0);
    for (int i = 0; i < LOOKUPS_MOST; i++) {
        assert_true(kit_until(&crowd[i].opened));
        stream_free(&crowd[i].stream);
    }
    stream_free(&party.stream);
    memset(&party, 0, sizeof party);
    open_name("second.example", /* timeout_ms= */ 5000);
    assert_true(kit_until(&party.opened));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First those that count: a thread may live on for a moment after its look-up. */
        cmocka_unit_test_setup_teardown(too_many_are_refused_and_not_queued, begin, finish),
        cmocka_unit_test_setup_teardown(a_cancelled_lookup_reports_nothing, begin, finish),
        cmocka_unit_test_setup_teardown(the_next_address_is_tried, begin, finish),
        cmocka_unit_test_setup_teardown(a_silent_address_uses_up_its_share_only, begin, finish),
        cmocka_unit_test_setup_teardown(a_name_that_is_none_is_said, begin, finish),
        cmocka_unit_test_setup_teardown(a_hanging_look_up_holds_up_nobody, begin, finish),
        cmocka_unit_test_setup_teardown(letting_go_races_with_the_answer, begin, finish),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}
