/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the file store, compared with the bare disk and with Redis: bench_file PART FOLDER
 * [SOCKET]. The folder is empty, on a disk, and cleared by the caller. scripts/bench.sh runs all
 * parts.
 */
#include "bench_file.h"

#include "rounds.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(const struct bench_paths *paths);
} parts[] = {
    {"pairs", bench_pairs},       {"flight", bench_flight},   {"processes", bench_processes},
    {"handover", bench_handover}, {"million", bench_million}, {"pause", bench_pause},
    {"run", bench_run},
};

void bench_path(const struct bench_paths *paths, const char *name, char *out)
{
    int length = snprintf(out, BENCH_PATH, "%s/%s", paths->folder, name);
    if (length < 0 || length >= BENCH_PATH)
        rounds_fail(paths->folder, "the path is too long");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        rounds_fail("usage", "bench_file PART FOLDER [SOCKET]");
    struct bench_paths paths = {.folder = argv[2], .socket = argc > 3 ? argv[3] : NULL};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run(&paths);
            return 0;
        }
    rounds_fail(argv[1], "there is no such part");
}
