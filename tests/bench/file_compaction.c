/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a large log for requests to one key of it, and the cost of its compaction for
 * concurrent writers.
 */
#include "bench_file.h"
#include "compaction.h"
#include "leases.h"
#include "rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEYS = 1000000,
    TOGETHER = 1000,
    CYCLES = 20,
    SESSION = 7,
    COMPACTIONS = 12,
    PAUSE_MOST_S = 20,
    SAMPLES_MOST = 400000,
};

struct samples {
    size_t count;
    double us[SAMPLES_MOST];
};

/* Requests during a compaction, and the others. */
struct latencies {
    struct samples beside, alone;
};

static void keep(struct latencies *latencies, bool beside, double took)
{
    struct samples *samples = beside ? &latencies->beside : &latencies->alone;
    if (samples->count < SAMPLES_MOST)
        samples->us[samples->count++] = took * 1e6;
}

static void say_samples(const char *what, struct samples *samples)
{
    double middle = rounds_share(samples->us, samples->count, 0.5);
    double high = rounds_share(samples->us, samples->count, 0.999);
    double longest = rounds_share(samples->us, samples->count, 1);
    (void)printf("  %-30s %7zu: median %.0f us, 99.9 %% below %.0f us, longest %.0f us\n", what,
                 samples->count, middle, high, longest);
}

/* Acquires and releases free keys, N at once, and records each duration. */
static void write_some(struct leases *leases, size_t together, struct compaction *compaction,
                       struct latencies *latencies)
{
    for (int i = 0; i < 2; i++) {
        bool beside = compaction_look(compaction);
        double from = rounds_seconds();
        if (i == 0)
            leases_take(leases, together, KEYS);
        else
            leases_give_back(leases, together);
        double took = rounds_seconds() - from;
        keep(latencies, compaction_look(compaction) || beside, took);
    }
}

static double mib_of(const char *path, const char *suffix)
{
    struct stat status;
    char name[BENCH_PATH + 8];
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    if (stat(name, &status) != 0)
        rounds_fail(name, strerror(errno));
    return (double)status.st_size / (1 << 20);
}

static void build(const char *path)
{
    struct compaction compaction;
    struct leases *leases = leases_open(path, SESSION, TOGETHER);
    compaction_init(&compaction, path);
    double from = rounds_seconds();
    for (uint64_t i = 0; i < KEYS; i += TOGETHER) {
        leases_take(leases, TOGETHER, i);
        (void)compaction_look(&compaction);
    }
    double took = rounds_seconds() - from;
    (void)compaction_look(&compaction);
    (void)printf("  built in %.1f s (%.0f records a second), with %u compactions; log %.0f MiB, "
                 "index %.0f MiB\n",
                 took, KEYS / took, compaction.count, mib_of(path, ""), mib_of(path, ".index"));
    (void)fflush(stdout);
    leases_close(&leases);
}

/* Writes until the log was compacted with all its keys. */
static void compact(const char *path)
{
    struct compaction compaction;
    struct latencies *latencies = rounds_memory(sizeof *latencies);
    struct leases *leases = leases_open(path, SESSION, TOGETHER);
    compaction_init(&compaction, path);
    while (compaction.count == 0)
        write_some(leases, TOGETHER, &compaction, latencies);
    (void)printf("  compacted in %.1f s beside the writes; log %.0f MiB\n", compaction.last_s,
                 mib_of(path, ""));
    say_samples("1000 requests together, beside", &latencies->beside);
    say_samples("1000 requests together, else", &latencies->alone);
    leases_close(&leases);
    free(latencies);
}

static void forget(const char *path)
{
    static const char *const suffixes[] = {".lock", ".index"};
    char name[BENCH_PATH + 8];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (unlink(name) != 0)
            rounds_fail(name, strerror(errno));
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fsync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        rounds_fail(path, strerror(errno));
    (void)close(file);
}

/* As after a reboot: the state of one boot is gone, and nothing is cached. */
static void open_first(const char *path)
{
    forget(path);
    double from = rounds_seconds();
    struct leases *leases = leases_open(path, SESSION, /* most= */ 1);
    (void)printf("  first open after a reboot %.2f s\n", rounds_seconds() - from);
    leases_close(&leases);
    sync(); /* pending writes of the system would disturb the next part */
}

/* The cost of a command that acquires and releases a key. */
static double cycle_us(const char *path)
{
    double from = rounds_seconds();
    for (int i = 0; i < CYCLES; i++) {
        struct leases *leases = leases_open(path, SESSION, /* most= */ 1);
        leases_take(leases, 1, KEYS + (uint64_t)i);
        leases_give_back(leases, 1);
        leases_close(&leases);
    }
    return (rounds_seconds() - from) * 1e6 / CYCLES;
}

void bench_million(const struct bench_paths *paths)
{
    char path[BENCH_PATH], empty[BENCH_PATH];
    double large[ROUNDS], small[ROUNDS];
    bench_path(paths, "million.log", path);
    bench_path(paths, "empty.log", empty);
    (void)printf("== file: a log with a million live keys\n");
    build(path);
    compact(path);
    open_first(path);
    (void)cycle_us(empty);
    for (int i = 0; i < ROUNDS; i++) {
        large[i] = cycle_us(path);
        small[i] = cycle_us(empty);
    }
    (void)printf("== file: open, acquire, release, close\n");
    rounds_say("with a million live keys", large, "us");
    rounds_say("on an empty log", small, "us");
    rounds_aim(large, small, AT_MOST, 2);
}

void bench_pause(const struct bench_paths *paths)
{
    char path[BENCH_PATH];
    struct compaction compaction;
    struct latencies *latencies = rounds_memory(sizeof *latencies);
    bench_path(paths, "pause.log", path);
    struct leases *leases = leases_open(path, SESSION, /* most= */ 1);
    compaction_init(&compaction, path);
    double from = rounds_seconds();
    while (compaction.count < COMPACTIONS && rounds_seconds() - from < PAUSE_MOST_S)
        write_some(leases, /* together= */ 1, &compaction, latencies);
    (void)printf("== file: single requests of one process while its log is compacted %u times\n",
                 compaction.count);
    say_samples("requests beside a compaction", &latencies->beside);
    say_samples("other requests", &latencies->alone);
    leases_close(&leases);
    free(latencies);
}
