/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred `leasehold run` in one queue: some give up after their timeout, some are killed while
 * they wait. The others enter one after the other, in order of arrival; none is stuck, and a
 * release wakes the next waiter and not the whole queue. A waiter does nothing between two polls:
 * strace observes it.
 */
#include "run_kit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WAITERS = 100,
    TIMEOUT_MS = 120000,
    SHORT_WAIT_MS = 4000,
    BUSY_STATUS = 75,
    /* One poll and a hand-off of its own, each a few sleeps of two threads. */
    SWITCHES_EACH = 24,
    WATCH_S = 14,
    SILENCE_MS = 5000, /* until the fallback poll, at least */
    BURSTS_MOST = 4,
};

struct board {
    _Atomic unsigned begun;         /* commands started */
    _Atomic unsigned gate;          /* commands that may end */
    _Atomic unsigned turn[WAITERS]; /* number of the last one; 0: none */
};

/* ---- the command ---- */

static int play_command(size_t number)
{
    struct board *board = kit_find_board(sizeof *board);
    unsigned turn = atomic_fetch_add(&board->begun, 1) + 1;
    if (number < WAITERS)
        atomic_store(&board->turn[number], turn);
    while (atomic_load(&board->gate) < turn)
        fixture_pause_us(1000);
    return 0;
}

static void name_holder(char *out, size_t size, uint64_t round, size_t number)
{
    (void)snprintf(out, size, "waiter-%zu-in-%" PRIu64 ".", number, round);
}

static pid_t start(uint64_t round, const char *program, const char *own, size_t number,
                   bool gives_up)
{
    char digits[24], wait[24], holder[48];
    /* Without --quiet it would log the holder after a second, and then every minute. */
    const char *args[] = {"leasehold", "run", "--quiet", "key",       "-w",   wait, "--holder",
                          holder,      "--",  own,       "--command", digits, NULL};
    (void)snprintf(digits, sizeof digits, "%zu", number);
    name_holder(holder, sizeof holder, round, number);
    (void)snprintf(wait, sizeof wait, gives_up ? "%dms" : "forever", SHORT_WAIT_MS);
    return kit_start(program, args);
}

/* ---- waiting without work ---- */

/* Number of sleeps of a process, over all its threads. */
static uint64_t switches_of(pid_t pid)
{
    char line[256], path[320];
    static const char field[] = "voluntary_ctxt_switches:";
    uint64_t count = 0;
    (void)snprintf(path, sizeof path, "cat /proc/%ld/task/*/status 2>/dev/null", (long)pid);
    FILE *pipe = popen(path, "re"); // NOLINT(cert-env33-c): a fixed line
    while (pipe != NULL && fgets(line, sizeof line, pipe) != NULL)
        if (strncmp(line, field, sizeof field - 1) == 0)
            count += strtoull(line + sizeof field - 1, NULL, 10);
    if (pipe != NULL)
        (void)pclose(pipe);
    return count;
}

/* From strace: number of system calls, and the shortest pause between. */
static void read_trace(const char *path, unsigned *out_bursts, int64_t *out_silence_ms)
{
    char line[1024];
    double before = 0;
    FILE *file = fopen(path, "re");
    *out_bursts = 0;
    *out_silence_ms = INT64_MAX;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *end;
        (void)strtol(line, &end, 10); /* the process */
        double at = strtod(end, NULL);
        int64_t silence_ms = (int64_t)((at - before) * 1000);
        bool anew = *out_bursts == 0 || silence_ms > 500;
        if (anew && *out_bursts > 0 && silence_ms < *out_silence_ms)
            *out_silence_ms = silence_ms;
        *out_bursts += anew ? 1 : 0;
        before = at;
    }
    if (file != NULL)
        (void)fclose(file);
}

/* Both processes of a waiting run. Time in which they and strace waited for a processor does not
 * count: a poll, or its trace line, may be late by that. */
static void watch_idle(struct fixture *fixture, pid_t foreground)
{
    char path[256], first[16], second[16];
    const char *args[] = {"strace", "-f",  "-qq", "-ttt", "-o", path,
                          "-p",     first, "-p",  second, NULL};
    unsigned bursts;
    int64_t silence_ms;
    pid_t supervisor = kit_supervisor(foreground);
    (void)snprintf(path, sizeof path, "%s/trace", fixture->folder);
    (void)snprintf(first, sizeof first, "%ld", (long)foreground);
    (void)snprintf(second, sizeof second, "%ld", (long)supervisor);
    int64_t before_us = fixture_unscheduled_us(foreground) + fixture_unscheduled_us(supervisor);
    pid_t tracer = kit_start("/usr/bin/strace", args);
    fixture_pause_us((int64_t)WATCH_S * 1000000);
    int64_t after_us = fixture_unscheduled_us(foreground) + fixture_unscheduled_us(supervisor);
    int64_t delayed_ms = (after_us - before_us + fixture_unscheduled_us(tracer)) / 1000;
    (void)kill(tracer, SIGTERM);
    (void)kit_join(tracer, TIMEOUT_MS);
    read_trace(path, &bursts, &silence_ms);
    fixture_print("one that waits did something %u times in %d s; the shortest pause was %" PRId64
                  " ms, delayed by up to %" PRId64 " ms",
                  bursts, WATCH_S, bursts > 1 ? silence_ms : -1, delayed_ms);
    fixture_case(fixture,
                 bursts > 1 && bursts <= BURSTS_MOST && silence_ms >= SILENCE_MS - delayed_ms,
                 "between two looks it makes no system call");
}

/* ---- the queue ---- */

struct line {
    struct fixture *fixture;
    uint64_t round;
    struct board *board;
    pid_t holder, foregrounds[WAITERS];
    bool gives_up[WAITERS], killed[WAITERS];
    unsigned stuck, early, out_of_order, statuses;
};

/* True if the log contains it. A log has no end mark but the last record, so all of it is read. */
static bool is_written(const struct fixture *fixture, uint64_t round, size_t number)
{
    char path[256], holder[48], *bytes = NULL;
    struct stat log;
    bool found = false;
    (void)snprintf(path, sizeof path, "%.127s/store", fixture->folder);
    name_holder(holder, sizeof holder, round, number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fstat(file, &log) == 0) {
        bytes = malloc((size_t)log.st_size + 1);
        ssize_t length = pread(file, bytes, (size_t)log.st_size, /* offset= */ 0);
        found = length > 0 && memmem(bytes, (size_t)length, holder, strlen(holder)) != NULL;
    }
    if (file >= 0)
        (void)close(file);
    free(bytes);
    return found;
}

/* The last one stays: it is the one under strace. */
static bool line_up(struct line *line, const char *program, const char *own)
{
    int64_t end_ms = live_now_ms() + TIMEOUT_MS;
    line->holder = start(line->round, program, own, WAITERS, /* gives_up= */ false);
    while (atomic_load(&line->board->begun) == 0 && live_now_ms() < end_ms)
        fixture_pause_us(1000);
    for (size_t i = 0; i < WAITERS; i++) {
        line->gives_up[i] = i + 1 < WAITERS && random_below(&line->fixture->random, 8) == 0;
        line->foregrounds[i] = start(line->round, program, own, i, line->gives_up[i]);
        while (!is_written(line->fixture, line->round, i) && live_now_ms() < end_ms)
            fixture_pause_us(2000);
    }
    return live_now_ms() < end_ms;
}

static void kill_some(struct line *line)
{
    for (size_t i = 0; i < WAITERS; i++) {
        pid_t supervisor = kit_supervisor(line->foregrounds[i]);
        line->killed[i] =
            !line->gives_up[i] && supervisor > 0 && random_below(&line->fixture->random, 5) == 0;
        if (line->killed[i])
            (void)kill(i % 2 == 0 ? line->foregrounds[i] : supervisor, SIGKILL);
    }
}

/* Releases one after the other until half of them are done; then counts the wake-ups. */
static void count_wakeups(struct line *line)
{
    uint64_t before = 0, after = 0;
    unsigned half = WAITERS / 3, asleep = 0;
    pid_t supervisors[WAITERS];
    for (size_t i = 0; i < WAITERS; i++) {
        bool late = i >= 2 * WAITERS / 3 && !line->killed[i] && !line->gives_up[i];
        supervisors[i] = late ? kit_supervisor(line->foregrounds[i]) : 0;
        before += supervisors[i] > 0 ? switches_of(supervisors[i]) : 0;
        asleep += supervisors[i] > 0 ? 1 : 0;
    }
    int64_t end_ms = live_now_ms() + TIMEOUT_MS;
    atomic_store(&line->board->gate, half);
    while (atomic_load(&line->board->begun) <= half && live_now_ms() < end_ms)
        fixture_pause_us(1000);
    for (size_t i = 0; i < WAITERS; i++)
        after += supervisors[i] > 0 ? switches_of(supervisors[i]) : 0;
    fixture_print("%u releases; %u others further back woke %" PRIu64 " times together", half,
                  asleep, after - before);
    fixture_case(line->fixture,
                 asleep > 0 && before > 0 && after - before <= (uint64_t)SWITCHES_EACH * asleep,
                 "a release does not wake the line");
}

static void let_all_in(struct line *line)
{
    unsigned last = 0;
    atomic_store(&line->board->gate, UINT32_MAX);
    (void)kit_join(line->holder, TIMEOUT_MS);
    for (size_t i = 0; i < WAITERS; i++) {
        int status = kit_join(line->foregrounds[i], TIMEOUT_MS);
        unsigned turn = atomic_load(&line->board->turn[i]);
        if (line->killed[i])
            continue;
        line->stuck += status < 0 ? 1 : 0;
        bool gave_up = line->gives_up[i] && status == BUSY_STATUS;
        line->statuses += status == 0 || gave_up ? 0 : 1;
        line->early += (turn == 0) == (status == 0) ? 1 : 0;
        line->out_of_order += turn != 0 && turn < last ? 1 : 0;
        last = turn != 0 ? turn : last;
    }
    kit_collect();
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    if (argc == 3 && strcmp(argv[1], "--command") == 0)
        return play_command(strtoul(argv[2], NULL, 10));
    fixture_open(&fixture, argc, argv, /* rounds= */ 1, /* limit_s= */ 120, /* round_ms= */ 240000,
                 /* shared_size= */ 1);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 1;
    for (uint64_t round = 0; round < fixture.rounds; round++) {
        struct line line = {.fixture = &fixture,
                            .round = round,
                            .board = kit_board(&fixture, sizeof(struct board))};
        memset(line.board, 0, sizeof *line.board);
        fixture_case(&fixture, line_up(&line, kit_program(argv[0]), argv[0]), "%d are in line",
                     WAITERS);
        if (round == 0)
            watch_idle(&fixture, line.foregrounds[WAITERS - 1]);
        kill_some(&line);
        fixture_pause_us((int64_t)SHORT_WAIT_MS * 1000);
        count_wakeups(&line);
        let_all_in(&line);
        fixture_case(&fixture, line.stuck == 0, "nobody is stuck (%u)", line.stuck);
        fixture_case(&fixture, line.statuses == 0 && line.early == 0,
                     "each was told what happened (%u)", line.statuses + line.early);
        fixture_case(&fixture, line.out_of_order == 0, "they came in as they had lined up (%u)",
                     line.out_of_order);
    }
    return fixture_close(&fixture);
}
