/* SPDX-License-Identifier: Apache-2.0 */
/* 64 threads of one client on one key and on 64: every section alone, and tokens only grow. */
#include "lib_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, KEYS_MOST = 64, ROUNDS = 12 };

/* What a key guards: changed without atomics, so that an overlap is seen (TSan sees it too). */
struct guarded {
    uint64_t last_token;
    int inside, entered;
};

static struct {
    struct lh_client *client;
    int keys;
    struct guarded guarded[KEYS_MOST];
    atomic_int overlaps, shrunk, refused, unheld;
} ring;

static void *work(void *argument)
{
    int number = *(const int *)argument;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = LH_WAIT_FOREVER;
    for (int round = 0; round < ROUNDS; round++) {
        char key[16];
        int index = (number + round) % ring.keys;
        struct guarded *guarded = &ring.guarded[index];
        struct lh_lease *lease = NULL;
        (void)snprintf(key, sizeof key, "key-%d", index);
        if (lh_acquire(ring.client, key, &options, &lease, NULL) != LH_OK) {
            atomic_fetch_add(&ring.refused, 1);
            continue;
        }
        if (guarded->inside++ != 0)
            atomic_fetch_add(&ring.overlaps, 1);
        if (lh_token(lease) <= guarded->last_token)
            atomic_fetch_add(&ring.shrunk, 1);
        guarded->last_token = lh_token(lease);
        guarded->entered++;
        if (!lh_held(lease))
            atomic_fetch_add(&ring.unheld, 1);
        guarded->inside--;
        if (lh_release(&lease, NULL) != LH_OK)
            atomic_fetch_add(&ring.refused, 1);
    }
    return NULL;
}

static void contend(int keys)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    int entered = 0;
    memset(&ring, 0, sizeof ring);
    ring.client = kit_open(NULL);
    ring.keys = keys;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < keys; i++)
        entered += ring.guarded[i].entered;
    assert_int_equal(atomic_load(&ring.overlaps), 0);
    assert_int_equal(atomic_load(&ring.shrunk), 0);
    assert_int_equal(atomic_load(&ring.refused), 0);
    assert_int_equal(atomic_load(&ring.unheld), 0);
    assert_int_equal(entered, THREADS * ROUNDS);
    lh_close(&ring.client);
}

static void on_one_key(void **state)
{
    (void)state;
    contend(1);
}

static void on_64_keys(void **state)
{
    (void)state;
    contend(KEYS_MOST);
}

int main(void)
{
#define ON_BOTH(test)                                                        \
    {"64 threads " #test " in memory", test, kit_on_memory, kit_done, NULL}, \
    {                                                                        \
        "64 threads " #test " in a file", test, kit_on_file, kit_done, NULL  \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(on_one_key),
        ON_BOTH(on_64_keys),
    };
#undef ON_BOTH
    return cmocka_run_group_tests_name("lib_threads", tests, NULL, NULL);
}
