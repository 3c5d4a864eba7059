/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run key -- true` against `flock file true`, alternating: the cost of a call in a
 * script, with two durable writes that flock does not make. On an empty log, and beside a hundred
 * thousand live keys. The program is the one that is built beside this.
 */
#include "bench_file.h"
#include "leases.h"
#include "rounds.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 25 /* of a round */, KEYS = 100000, TOGETHER = 1000, SESSION = 77 };

/* The median time of a call, in microseconds. */
static double call_us(char *const *args)
{
    double times[CALLS];
    for (int i = 0; i < CALLS; i++) {
        pid_t pid;
        int status;
        double from = rounds_seconds();
        if (posix_spawnp(&pid, args[0], NULL, NULL, args, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            rounds_fail(args[0], "could not be run");
        times[i] = (rounds_seconds() - from) * 1e6;
    }
    return rounds_share(times, CALLS, 0.5);
}

static double run_us(const char *path)
{
    char program[] = "build/bench/leasehold", verb[] = "run", flag[] = "--store", key[] = "key";
    char ends[] = "--", command[] = "true", url[BENCH_PATH + 8];
    char *args[] = {program, verb, flag, url, key, ends, command, NULL};
    (void)snprintf(url, sizeof url, "file:%s", path);
    return call_us(args);
}

static double flock_us(const char *path)
{
    char program[] = "flock", command[] = "true", file[BENCH_PATH];
    char *args[] = {program, file, command, NULL};
    (void)snprintf(file, sizeof file, "%s", path);
    return call_us(args);
}

/* Unbound, so that they end with their TTL, not with this process. */
static void fill(const char *path)
{
    struct leases *leases = leases_open(path, SESSION, TOGETHER);
    for (uint64_t first = 0; first < KEYS; first += TOGETHER)
        leases_take(leases, TOGETHER, first);
    leases_close(&leases);
}

void bench_run(const struct bench_paths *paths)
{
    char lock[BENCH_PATH], empty[BENCH_PATH], large[BENCH_PATH];
    double flock[ROUNDS], run[ROUNDS], beside[ROUNDS];
    bench_path(paths, "lock", lock);
    bench_path(paths, "empty.log", empty);
    bench_path(paths, "large.log", large);
    fill(large);
    (void)run_us(empty);
    (void)run_us(large);
    for (int i = 0; i < ROUNDS; i++) {
        flock[i] = flock_us(lock);
        run[i] = run_us(empty);
        beside[i] = run_us(large);
    }
    (void)printf("== run: leasehold run key -- true against flock file true\n");
    rounds_say("flock", flock, "us");
    rounds_say("leasehold run", run, "us");
    rounds_aim(run, flock, AT_MOST, 2.5);
    rounds_say("beside 100,000 live keys", beside, "us");
    rounds_aim(beside, run, AT_MOST, 2);
}
