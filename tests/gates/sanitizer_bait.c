/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one mistake on purpose, the one it is asked for, so that tests/gates/sanitizers.sh can see
 * that the sanitized build stops on it. The mistakes depend on the argument count, or the compiler
 * and the other gates would find them first. Must never be part of a build that is used.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int overflow(int count)
{
    return INT_MAX - 1 + count;
}

static int out_of_bounds(int count)
{
    unsigned char *bytes = calloc((size_t)count, 1);
    if (bytes == NULL) {
        return 0;
    }
    int read = bytes[count];
    free(bytes);
    return read;
}

static int leak(int count)
{
    static void *only_owner;
    only_owner = malloc((size_t)count);
    int taken = only_owner != NULL;
    only_owner = NULL;
    return taken;
}

static int shift(int count)
{
    return 1 << (count + 31);
}

static volatile int unguarded;
static pthread_barrier_t begun, ended;

/* Often, and while both are there: a single one, or one of a thread that has ended, may be missed.
 */
static void *count_up(void *argument)
{
    (void)pthread_barrier_wait(&begun);
    for (int i = 0; i < 10000; i++) {
        unguarded += *(const int *)argument;
    }
    (void)pthread_barrier_wait(&ended);
    return NULL;
}

static int race(int count)
{
    pthread_t other;
    if (pthread_barrier_init(&begun, NULL, 2) != 0 || pthread_barrier_init(&ended, NULL, 2) != 0 ||
        pthread_create(&other, NULL, count_up, &count) != 0) {
        return 0;
    }
    (void)count_up(&count);
    (void)pthread_join(other, NULL);
    (void)pthread_barrier_destroy(&begun);
    (void)pthread_barrier_destroy(&ended);
    return unguarded;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*make)(int count);
    } mistakes[] = {
        {"none", abs},  {"overflow", overflow}, {"bounds", out_of_bounds},
        {"leak", leak}, {"shift", shift},       {"race", race},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        if (strcmp(argv[1], mistakes[i].name) == 0) {
            printf("went on: %d\n", mistakes[i].make(argc));
            return 0;
        }
    }
    return 64;
}
