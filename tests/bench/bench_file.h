/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of bench_file.c. Each measures one thing in its own folder and prints the result. */
#ifndef LEASEHOLD_TESTS_BENCH_FILE_H
#define LEASEHOLD_TESTS_BENCH_FILE_H

/* `socket` is the address of a Redis server; NULL: no comparison. */
struct bench_paths {
    const char *folder, *socket;
};

void bench_pairs(const struct bench_paths *paths);
void bench_flight(const struct bench_paths *paths);
void bench_processes(const struct bench_paths *paths);
void bench_handover(const struct bench_paths *paths);
void bench_million(const struct bench_paths *paths);
void bench_pause(const struct bench_paths *paths);
void bench_run(const struct bench_paths *paths);

enum { BENCH_PATH = 4096 };

/* The path of a file in the site's folder. */
void bench_path(const struct bench_paths *paths, const char *name, char *out);

#endif
