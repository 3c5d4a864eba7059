/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run` that cannot continue, with a TTL of 3 s: its supervisor is stopped, its disk
 * hangs (strace delays every sync), an operator breaks the lock. The whole command must be dead
 * before the next one starts; a twelfth of the TTL is left for that, and a round in which the
 * machine scheduled no process for that duration is repeated. Stopping the foreground process
 * changes nothing.
 */
#include "run_instance.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    TTL_MS = 3000,
    LEFT_OF_TTL_MS = TTL_MS / 12, /* limit for the death of all processes */
    AGAIN_MOST = 10,
    GRANTED_MS = 3 * TTL_MS, /* limit for the next entry */
    LEFT_MS = 5000,
    LOST_STATUS = 76,
};

static const char ttl[] = "3s";
static const char again[] = "the machine stood still";

struct play {
    struct fixture *fixture;
    struct board *board;
    const char *program, *own;
    size_t instances;
    pid_t foreground;
    int64_t closest_ms; /* between the death of one command and the start of the next */
};

static bool begin_first(struct play *play)
{
    play->foreground = instance_start(play->program, play->own, play->instances++, ttl);
    return instance_starts_within(&play->board->instances[play->instances - 1],
                                  INSTANCE_TIMEOUT_MS);
}

static pid_t start_tracer(pid_t supervisor)
{
    char pid[16];
    const char *args[] = {"strace",
                          "-f",
                          "-qq",
                          "-o",
                          "/dev/null",
                          "-p",
                          pid,
                          "-e",
                          "trace=fdatasync",
                          "-e",
                          "inject=fdatasync:delay_enter=20s",
                          NULL};
    (void)snprintf(pid, sizeof pid, "%ld", (long)supervisor);
    return kit_start("/usr/bin/strace", args);
}

/* Attaches strace to every thread; a thread that starts meanwhile may end strace. 0: it failed. */
static pid_t hang_disk(pid_t supervisor)
{
    int64_t end_ms = live_now_ms() + INSTANCE_TIMEOUT_MS;
    pid_t tracer = start_tracer(supervisor);
    while (tracer > 0 && !kit_is_traced(supervisor, tracer)) {
        if (live_now_ms() >= end_ms) {
            (void)kill(tracer, SIGKILL);
            return 0;
        }
        if (kit_join(tracer, /* limit_ms= */ 5) != -1)
            tracer = start_tracer(supervisor);
    }
    return tracer;
}

static pid_t break_lock(const struct play *play)
{
    const char *args[] = {"leasehold", "break", "key", "--reason", "a test", NULL};
    return kit_start(play->program, args);
}

enum trouble { STOPPED, HANGS, BROKEN };
static const char *const trouble_names[] = {
    [STOPPED] = "the supervisor is stopped", [HANGS] = "the disk hangs", [BROKEN] = "it is broken"};

/* Injects the fault; returns an error text, or NULL. */
static const char *make_trouble(const struct play *play, enum trouble trouble, pid_t supervisor,
                                pid_t *out_helper)
{
    if (trouble == STOPPED)
        (void)kill(supervisor, SIGSTOP);
    else
        *out_helper = trouble == HANGS ? hang_disk(supervisor) : break_lock(play);
    if (trouble == STOPPED || *out_helper > 0)
        return NULL;
    return trouble == HANGS ? "the disk cannot be made to hang" : "there is no process left";
}

/* Waits for the next start. Returns when the previous command was gone; 0: it was not. strace is
 * killed: on SIGTERM while its child dies it may remain, and keep the disk hanging. */
static int64_t await_next(const struct play *play, pid_t tracer, int64_t *out_stood_still_ms)
{
    const struct instance *after = &play->board->instances[play->instances - 1],
                          *before = after - 1;
    int64_t gone_us = 0, longest_us = 0, waited_us = fixture_unscheduled_us(play->foreground),
            more_us = 0;
    int64_t turn_us = fixture_now_us(), end_us = turn_us + GRANTED_MS * (int64_t)1000;
    while (atomic_load(&after->began_us) == 0 && turn_us < end_us) {
        if (gone_us == 0 && instance_is_gone(before)) {
            gone_us = fixture_now_us();
            if (tracer > 0)
                (void)kill(tracer, SIGKILL); /* frees the disk: others wait for that sync, too */
        }
        int64_t unscheduled_us = fixture_unscheduled_us(play->foreground);
        more_us = unscheduled_us > waited_us ? unscheduled_us - waited_us : more_us;
        fixture_pause_us(1000);
        int64_t now_us = fixture_now_us();
        longest_us = now_us - turn_us > longest_us ? now_us - turn_us : longest_us;
        turn_us = now_us;
    }
    if (gone_us == 0 && tracer > 0)
        (void)kill(tracer, SIGKILL);
    *out_stood_still_ms = (longest_us + more_us) / 1000;
    return gone_us;
}

/* Returns the failure of this round; NULL: none. */
static const char *play_round(struct play *play, enum trouble trouble)
{
    struct instance *before = &play->board->instances[play->instances - 1], *after = before + 1;
    struct process_ref supervisor;
    pid_t helper = 0;
    int64_t stood_still_ms = 0;
    process_ref_set(&supervisor, kit_supervisor(play->foreground));
    if (supervisor.pid <= 0)
        return "there is no supervisor";
    pid_t next = instance_start(play->program, play->own, play->instances++, ttl);
    if (!instance_is_queued(next))
        return "the next one is not in line";
    const char *wrong = make_trouble(play, trouble, supervisor.pid, &helper);
    if (wrong != NULL)
        return wrong;
    int64_t gone_us = await_next(play, trouble == HANGS ? helper : 0, &stood_still_ms);
    if (!instance_starts_within(after, GRANTED_MS))
        return "the next one did not come in";
    if (gone_us == 0 && instance_is_gone(before)) /* the next one started before we checked it */
        gone_us = atomic_load(&after->began_us);
    bool overlaps = atomic_load(&after->overlapping) > 0 || gone_us == 0;
    if (overlaps)
        fixture_print("%u of them lived beside the next one; the machine stood still for %" PRId64
                      " ms",
                      atomic_load(&after->overlapping), stood_still_ms);
    if (overlaps && stood_still_ms < LEFT_OF_TTL_MS / 4)
        return "the next one came in beside it";
    int64_t between_ms = (atomic_load(&after->began_us) - gone_us) / 1000;
    if (!overlaps && between_ms < play->closest_ms)
        play->closest_ms = between_ms;
    int status = kit_join(play->foreground, LEFT_MS);
    play->foreground = next;
    kit_collect();
    if (!process_ref_ends_within(&supervisor, LEFT_MS))
        return "the supervisor was left";
    if (overlaps)
        return again;
    return status == LOST_STATUS ? NULL : "the exit status is another";
}

static void play_trouble(struct play *play, enum trouble trouble)
{
    struct fixture *fixture = play->fixture;
    const char *wrong = begin_first(play) ? NULL : "nothing began";
    uint64_t rounds = 0;
    unsigned repeated = 0;
    play->closest_ms = INT64_MAX;
    while (wrong == NULL && rounds < fixture->rounds) {
        wrong = play_round(play, trouble);
        rounds += wrong == NULL ? 1 : 0;
        if (wrong == again && repeated++ < AGAIN_MOST)
            wrong = NULL;
    }
    fixture_case(
        fixture, wrong == NULL, "%s: all of the command died first, %" PRIu64 " rounds%s%s",
        trouble_names[trouble], rounds, wrong != NULL ? "; " : "", wrong != NULL ? wrong : "");
    if (wrong == NULL)
        fixture_print("%s: at least %" PRId64 " ms before the next one began",
                      trouble_names[trouble], play->closest_ms);
    instance_kill(&play->board->instances[play->instances - 1], 0);
    (void)kit_join(play->foreground, LEFT_MS);
}

/* Even for three TTLs. */
static void stop_foreground(struct play *play)
{
    bool fine = begin_first(play);
    struct instance *instance = &play->board->instances[play->instances - 1];
    (void)kill(play->foreground, SIGSTOP);
    pid_t next = instance_start(play->program, play->own, play->instances++, ttl);
    bool kept = !instance_starts_within(instance + 1, GRANTED_MS) &&
                process_ref_alive(&instance->processes[0]);
    fixture_case(play->fixture, fine && kept, "a stopped front changes nothing: the lock is kept");
    (void)kill(play->foreground, SIGCONT);
    if (process_ref_alive(&instance->processes[0]))
        (void)kill(atomic_load(&instance->processes[0].pid), SIGKILL);
    fixture_case(play->fixture, kit_join(play->foreground, LEFT_MS) == 128 + SIGKILL,
                 "and it ends with its command");
    fixture_case(play->fixture,
                 instance_starts_within(instance + 1, GRANTED_MS) &&
                     atomic_load(&instance[1].overlapping) == 0,
                 "which lets the next one in");
    instance_kill(instance + 1, 0);
    (void)kit_join(next, LEFT_MS);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    if (argc == 3 && strcmp(argv[1], "--command") == 0)
        return instance_main(strtoul(argv[2], NULL, 10));
    fixture_open(&fixture, argc, argv, /* rounds= */ 1, /* limit_s= */ 60, /* round_ms= */ 30000,
                 /* shared_size= */ 1);
    struct play play = {.fixture = &fixture,
                        .board = kit_board(&fixture, sizeof(struct board)),
                        .program = kit_program(argv[0]),
                        .own = argv[0]};
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 1;
    for (enum trouble trouble = STOPPED; trouble <= BROKEN; trouble++)
        play_trouble(&play, trouble);
    stop_foreground(&play);
    kit_collect();
    return fixture_close(&fixture);
}
