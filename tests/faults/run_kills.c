/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run`, killed: the foreground process, its supervisor, the command, in turn, N rounds
 * each. The command has children: a plain one, one that ignores SIGTERM and SIGHUP, one in a
 * session of its own. The next command, which waits in the queue, checks at its start whether any
 * of them still runs. It must start soon, and no process may be left.
 *
 * This holds on every store, since the surviving process cleans up. If none survives and the store
 * cannot detect dead processes, the next command starts when the lease has expired.
 */
#include "run_instance.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 1000,
    TAKEOVER_MS = 1000,
    SLOWER = 10,     /* and this multiple of a start and a sync on this machine, … */
    WOKEN_MS = 4500, /* … unless a waiter without a wake-up could be as fast: it is too busy */
    LEFT_MS = 5000,  /* all of a killed run must be gone by then */
    POLL_MS = 6500,  /* the longest sleep of a waiter without a notification */
};

static const char usual_ttl[] = "30s", short_ttl[] = "6s";
enum { SHORT_TTL_MS = 6000 };

enum target { FOREGROUND, SUPERVISOR, COMMAND, BOTH };
static const char *const target_names[] = {[FOREGROUND] = "leasehold run",
                                           [SUPERVISOR] = "its supervisor",
                                           [COMMAND] = "the command",
                                           [BOTH] = "both at once"};

/* ---- rounds ---- */

struct play {
    struct fixture *fixture;
    struct board *board;
    const char *program, *own, *ttl;
    size_t instances;      /* started so far */
    pid_t foreground;      /* of the current holder … */
    pid_t next_foreground; /* … and of the waiter */
    int64_t longest_ms;
    int64_t start_ms; /* from the start of the waiter to its queue entry */
    unsigned busy;    /* rounds that do not count for times */
    unsigned late, overlapping, left, old_tokens, statuses, rounds;
};

static void line_up(struct play *play)
{
    play->next_foreground = instance_start(play->program, play->own, play->instances++, play->ttl);
}

static void strike(enum target target, pid_t foreground, pid_t supervisor,
                   const struct instance *instance)
{
    if (foreground <= 0 || supervisor <= 0 || atomic_load(&instance->processes[0].pid) <= 0)
        return; /* a round that failed early; 0 would be our own group */
    if (target == BOTH)
        (void)kill(supervisor, SIGSTOP); /* or it would see the foreground process end */
    if (target == FOREGROUND || target == BOTH)
        (void)kill(foreground, SIGKILL);
    if (target == SUPERVISOR || target == BOTH)
        (void)kill(supervisor, SIGKILL);
    if (target == COMMAND)
        (void)kill(atomic_load(&instance->processes[0].pid), SIGKILL);
}

/* A durable write; a takeover has two of them. */
static int64_t sync_ms(const struct fixture *fixture)
{
    char path[256];
    int64_t began_ms = live_now_ms();
    (void)snprintf(path, sizeof path, "%.127s/probe", fixture->folder);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool synced = file >= 0 && pwrite(file, path, sizeof path, 0) > 0 && fdatasync(file) == 0;
    if (file >= 0)
        (void)close(file);
    return synced ? live_now_ms() - began_ms : 0;
}

/* The longest durable write since the round began, for the reader of a failure only: it tells a
 * busy disk from a lost wake-up. The limit does not depend on it. */
static _Atomic int64_t longest_sync_ms;
static atomic_bool probing = true;

static void *probe_syncs(void *argument)
{
    const struct fixture *fixture = argument;
    while (atomic_load(&probing)) {
        int64_t took_ms = sync_ms(fixture);
        if (took_ms > atomic_load(&longest_sync_ms))
            atomic_store(&longest_sync_ms, took_ms);
        fixture_pause_us(20000);
    }
    return NULL;
}

static bool line_up_in_time(struct play *play)
{
    int64_t began_ms = live_now_ms();
    atomic_store(&longest_sync_ms, 0);
    line_up(play);
    bool in_line = instance_is_queued(play->next_foreground);
    play->start_ms = live_now_ms() - began_ms;
    return in_line;
}

static void judge(struct play *play, struct instance *before, struct instance *after,
                  int64_t struck_us)
{
    int64_t after_ms = (atomic_load(&after->began_us) - struck_us) / 1000;
    play->longest_ms = after_ms > play->longest_ms ? after_ms : play->longest_ms;
    if (after_ms > TAKEOVER_MS) {
        int64_t most_ms = TAKEOVER_MS + SLOWER * (play->start_ms + sync_ms(play->fixture));
        fixture_print("a takeover took %" PRId64 " ms; the slowest sync beside it %" PRId64
                      " ms, the start of the waiter %" PRId64 " ms",
                      after_ms, atomic_load(&longest_sync_ms), play->start_ms);
        play->busy += most_ms > WOKEN_MS ? 1 : 0;
        play->late += most_ms <= WOKEN_MS && after_ms > most_ms ? 1 : 0;
    }
    play->overlapping += atomic_load(&after->overlapping) > 0 ? 1 : 0;
    play->old_tokens += atomic_load(&after->token) <= atomic_load(&before->token) ? 1 : 0;
}

/* Kills a process of the holder; the next one enters. False: it did not. */
static bool play_round(struct play *play, enum target target)
{
    static const int statuses[] = {
        [FOREGROUND] = 128 + SIGKILL, [SUPERVISOR] = 70, [COMMAND] = 128 + SIGKILL};
    struct instance *before = &play->board->instances[play->instances - 1], *after = before + 1;
    struct process_ref supervisor;
    if (!instance_starts_within(before, INSTANCE_TIMEOUT_MS))
        return false;
    if (!line_up_in_time(play))
        return false;
    process_ref_set(&supervisor, kit_supervisor(play->foreground));
    fixture_pause_us((int64_t)random_below(&play->fixture->random, 20000));
    int64_t struck_us = fixture_now_us();
    strike(target, play->foreground, supervisor.pid, before);
    if (!instance_starts_within(after, INSTANCE_TIMEOUT_MS))
        return false;
    judge(play, before, after, struck_us);
    play->statuses += kit_join(play->foreground, LEFT_MS) == statuses[target] ? 0 : 1;
    bool gone = process_ref_ends_within(&supervisor, LEFT_MS);
    for (size_t i = 0; i < INSTANCE_PROCESSES; i++)
        gone = process_ref_ends_within(&before->processes[i], LEFT_MS) && gone;
    play->left += gone ? 0 : 1;
    play->foreground = play->next_foreground;
    play->rounds++;
    kit_collect();
    return true;
}

static void report(struct play *play, enum target target)
{
    struct fixture *fixture = play->fixture;
    const char *name = target_names[target];
    fixture_print("killed %s: %u rounds; the next command came in at most %" PRId64 " ms later",
                  name, play->rounds, play->longest_ms);
    fixture_case(fixture, play->rounds == fixture->rounds, "killed %s: %u of %" PRIu64 " rounds",
                 name, play->rounds, fixture->rounds);
    fixture_case(fixture, play->overlapping == 0, "no command began beside the killed one's (%u)",
                 play->overlapping);
    fixture_case(fixture, play->late == 0,
                 "each within %d ms and the machine's delay (%u later, %u not judged)", TAKEOVER_MS,
                 play->late, play->busy);
    fixture_case(fixture, play->left == 0, "no process was left (%u)", play->left);
    fixture_case(fixture, play->old_tokens == 0, "tokens grew (%u)", play->old_tokens);
    fixture_case(fixture, play->statuses == 0, "the exit status told it (%u)", play->statuses);
}

/* ---- no process left to clean up ---- */

/* Foreground process and supervisor die together: the command's own process does, too. Its children
 * do not, and keep the lock until they end: they inherited what keeps the lease alive. */
static void kill_both(struct play *play)
{
    struct fixture *fixture = play->fixture;
    struct instance *before = &play->board->instances[play->instances - 1], *after = before + 1;
    bool fine = instance_starts_within(before, INSTANCE_TIMEOUT_MS);
    line_up(play);
    fine = instance_is_queued(play->next_foreground) && fine;
    strike(BOTH, play->foreground, kit_supervisor(play->foreground), before);
    fine = process_ref_ends_within(&before->processes[0], LEFT_MS) && fine;
    bool kept = !instance_starts_within(after, POLL_MS) && process_ref_alive(&before->processes[1]);
    fixture_case(fixture, fine && kept, "killed both: what the command started keeps the lock");
    instance_kill(before, 1);
    fixture_case(fixture,
                 instance_starts_within(after, INSTANCE_TIMEOUT_MS) &&
                     atomic_load(&after->overlapping) == 0,
                 "and gives it up with its end");
    play->foreground = play->next_foreground;
    kit_collect();
}

/* The same with a command that closes the inherited descriptor: the documented limit, and the proof
 * that the test detects two commands at once. */
static void see_overlap(struct play *play)
{
    struct instance *before = &play->board->instances[play->instances - 1], *after = before + 1;
    instance_kill(before, 0); /* the next one closes it */
    (void)kit_join(play->foreground, LEFT_MS);
    atomic_store(&play->board->closes, true);
    line_up(play);
    play->foreground = play->next_foreground;
    before = after++;
    bool fine = instance_starts_within(before, INSTANCE_TIMEOUT_MS);
    line_up(play);
    fine = instance_is_queued(play->next_foreground) && fine;
    strike(BOTH, play->foreground, kit_supervisor(play->foreground), before);
    fine = instance_starts_within(after, INSTANCE_TIMEOUT_MS) && fine;
    fixture_case(play->fixture, fine && atomic_load(&after->overlapping) > 0,
                 "one that closes everything does not keep it, which is seen");
    instance_kill(before, 0);
    instance_kill(after, 0);
    (void)kit_join(play->next_foreground, LEFT_MS);
    kit_collect();
}

/* Without detection of dead processes: not before the lease expires, and then soon. */
static void outlive_both(struct play *play)
{
    struct fixture *fixture = play->fixture;
    struct instance *before = &play->board->instances[play->instances - 1], *after = before + 1;
    instance_kill(before, 0); /* the next one has a short lease */
    (void)kit_join(play->foreground, LEFT_MS);
    play->ttl = short_ttl;
    line_up(play);
    play->foreground = play->next_foreground;
    before = after++;
    bool fine = instance_starts_within(before, INSTANCE_TIMEOUT_MS);
    fine = line_up_in_time(play) && fine;
    int64_t struck_us = fixture_now_us();
    strike(BOTH, play->foreground, kit_supervisor(play->foreground), before);
    fine = process_ref_ends_within(&before->processes[0], LEFT_MS) && fine;
    fixture_case(fixture, fine, "killed both: the command dies with them");
    fine = instance_starts_within(after, INSTANCE_TIMEOUT_MS);
    int64_t after_ms = (atomic_load(&after->began_us) - struck_us) / 1000;
    fixture_print("killed both: the next command came in %" PRId64 " ms later, TTL %d ms", after_ms,
                  SHORT_TTL_MS);
    /* It was renewed at most a third of the TTL before. */
    fixture_case(fixture, fine && after_ms >= SHORT_TTL_MS / 2,
                 "nobody comes before the lease has ended");
    fixture_case(fixture, fine && after_ms <= SHORT_TTL_MS + TAKEOVER_MS + SLOWER * play->start_ms,
                 "and then somebody does");
    instance_kill(before, 0);
    instance_kill(after, 0);
    (void)kit_join(play->next_foreground, LEFT_MS);
    kit_collect();
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    pthread_t probe;
    if (argc == 3 && strcmp(argv[1], "--command") == 0)
        return instance_main(strtoul(argv[2], NULL, 10));
    fixture_open(&fixture, argc, argv, /* rounds= */ 50, /* limit_s= */ 120, /* round_ms= */ 10000,
                 /* shared_size= */ 1);
    if (fixture.rounds > ROUNDS_MAX)
        fixture.rounds = ROUNDS_MAX;
    struct play play = {.fixture = &fixture,
                        .board = kit_board(&fixture, sizeof(struct board)),
                        .program = kit_program(argv[0]),
                        .own = argv[0],
                        .ttl = usual_ttl};
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 1;
    if (pthread_create(&probe, NULL, probe_syncs, &fixture) != 0)
        return 1;
    line_up(&play);
    play.foreground = play.next_foreground;
    for (enum target target = FOREGROUND; target <= COMMAND; target++) {
        play.rounds = play.busy = play.late = play.overlapping = play.left = play.old_tokens =
            play.statuses = 0;
        play.longest_ms = 0;
        while (play.rounds < fixture.rounds && !fixture_late(&fixture) &&
               play_round(&play, target)) {
        }
        report(&play, target);
    }
    if (fixture_knows_dead(&fixture)) {
        kill_both(&play);
        see_overlap(&play);
    } else {
        outlive_both(&play);
    }
    atomic_store(&probing, false);
    (void)pthread_join(probe, NULL);
    return fixture_close(&fixture);
}
