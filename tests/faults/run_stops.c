/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run` that cannot go on, with a TTL of 3 s: its guardian is stopped, its disk hangs
 * (strace holds every sync back), an operator breaks the lock. All of the command must be dead
 * before the next one is let in; a twelfth of the TTL is left for that, and a round in which the
 * machine gave nobody a processor for so long is played again. Stopping the process that the user
 * started changes nothing.
 */
#include "run_act.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    TTL_MS = 3000,
    LEFT_OF_TTL_MS = TTL_MS / 12, /* when all is dead at the latest */
    AGAIN_MOST = 10,
    GRANTED_MS = 3 * TTL_MS, /* by then the next one must be in */
    LEFT_MS = 5000,
    LOST_STATUS = 76,
};

static const char ttl[] = "3s";
static const char again[] = "the machine stood still";

struct play {
    struct rig *rig;
    struct board *board;
    const char *program, *own;
    size_t acts;
    pid_t front;
    int64_t closest_ms; /* between the death of one command and the next one's beginning */
};

static bool begin_first(struct play *play)
{
    play->front = act_start(play->program, play->own, play->acts++, ttl);
    return act_begins_within(&play->board->acts[play->acts - 1], ACT_PATIENCE_MS);
}

static pid_t start_tracer(pid_t guardian)
{
    char pid[16];
    const char *words[] = {"strace",
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
    (void)snprintf(pid, sizeof pid, "%ld", (long)guardian);
    return kit_start("/usr/bin/strace", words);
}

/* Every thread of it is traced; one that begins while strace attaches may end strace. 0: it cannot
 * be. */
static pid_t hang_disk(pid_t guardian)
{
    int64_t end_ms = live_now_ms() + ACT_PATIENCE_MS;
    pid_t tracer = start_tracer(guardian);
    while (tracer > 0 && !kit_is_traced(guardian, tracer)) {
        if (live_now_ms() >= end_ms) {
            (void)kill(tracer, SIGKILL);
            return 0;
        }
        if (kit_join(tracer, /* limit_ms= */ 5) != -1)
            tracer = start_tracer(guardian);
    }
    return tracer;
}

static pid_t break_lock(const struct play *play)
{
    const char *words[] = {"leasehold", "break", "key", "--reason", "a test", NULL};
    return kit_start(play->program, words);
}

enum trouble { STOPPED, HANGS, BROKEN };
static const char *const trouble_names[] = {
    [STOPPED] = "the guardian is stopped", [HANGS] = "the disk hangs", [BROKEN] = "it is broken"};

/* Makes the trouble; what is wrong with that, or NULL. */
static const char *make_trouble(const struct play *play, enum trouble trouble, pid_t guardian,
                                pid_t *out_helper)
{
    if (trouble == STOPPED)
        (void)kill(guardian, SIGSTOP);
    else
        *out_helper = trouble == HANGS ? hang_disk(guardian) : break_lock(play);
    if (trouble == STOPPED || *out_helper > 0)
        return NULL;
    return trouble == HANGS ? "the disk cannot be made to hang" : "there is no process left";
}

/* Until the next one begins. When was the one before gone? 0: it was not. strace is killed: when it
 * is asked to end while its child dies it may stay, and keep the disk hanging. */
static int64_t await_next(const struct play *play, pid_t tracer, int64_t *out_stood_still_ms)
{
    const struct act *after = &play->board->acts[play->acts - 1], *before = after - 1;
    int64_t gone_us = 0, longest_us = 0, waited_us = rig_unscheduled_us(play->front), more_us = 0;
    int64_t turn_us = rig_now_us(), end_us = turn_us + GRANTED_MS * (int64_t)1000;
    while (atomic_load(&after->began_us) == 0 && turn_us < end_us) {
        if (gone_us == 0 && act_is_gone(before)) {
            gone_us = rig_now_us();
            if (tracer > 0)
                (void)kill(tracer, SIGKILL); /* the disk is back: others wait for that sync, too */
        }
        int64_t unscheduled_us = rig_unscheduled_us(play->front);
        more_us = unscheduled_us > waited_us ? unscheduled_us - waited_us : more_us;
        rig_pause_us(1000);
        int64_t now_us = rig_now_us();
        longest_us = now_us - turn_us > longest_us ? now_us - turn_us : longest_us;
        turn_us = now_us;
    }
    if (gone_us == 0 && tracer > 0)
        (void)kill(tracer, SIGKILL);
    *out_stood_still_ms = (longest_us + more_us) / 1000;
    return gone_us;
}

/* What is wrong with this round; NULL: nothing. */
static const char *play_round(struct play *play, enum trouble trouble)
{
    struct act *before = &play->board->acts[play->acts - 1], *after = before + 1;
    struct known guardian;
    pid_t helper = 0;
    int64_t stood_still_ms = 0;
    known_note(&guardian, kit_guardian(play->front));
    if (guardian.pid <= 0)
        return "there is no guardian";
    pid_t next = act_start(play->program, play->own, play->acts++, ttl);
    if (!act_is_in_line(next))
        return "the next one is not in line";
    const char *wrong = make_trouble(play, trouble, guardian.pid, &helper);
    if (wrong != NULL)
        return wrong;
    int64_t gone_us = await_next(play, trouble == HANGS ? helper : 0, &stood_still_ms);
    if (!act_begins_within(after, GRANTED_MS))
        return "the next one did not come in";
    if (gone_us == 0 && act_is_gone(before)) /* the next one was faster than our look at it */
        gone_us = atomic_load(&after->began_us);
    bool beside = atomic_load(&after->beside) > 0 || gone_us == 0;
    if (beside)
        rig_say("%u of them lived beside the next one; the machine stood still for %" PRId64 " ms",
                atomic_load(&after->beside), stood_still_ms);
    if (beside && stood_still_ms < LEFT_OF_TTL_MS / 4)
        return "the next one came in beside it";
    int64_t between_ms = (atomic_load(&after->began_us) - gone_us) / 1000;
    if (!beside && between_ms < play->closest_ms)
        play->closest_ms = between_ms;
    int status = kit_join(play->front, LEFT_MS);
    play->front = next;
    kit_collect();
    if (!known_ends_within(&guardian, LEFT_MS))
        return "the guardian was left";
    if (beside)
        return again;
    return status == LOST_STATUS ? NULL : "the exit status is another";
}

static void play_trouble(struct play *play, enum trouble trouble)
{
    struct rig *rig = play->rig;
    const char *wrong = begin_first(play) ? NULL : "nothing began";
    uint64_t rounds = 0;
    unsigned repeated = 0;
    play->closest_ms = INT64_MAX;
    while (wrong == NULL && rounds < rig->rounds) {
        wrong = play_round(play, trouble);
        rounds += wrong == NULL ? 1 : 0;
        if (wrong == again && repeated++ < AGAIN_MOST)
            wrong = NULL;
    }
    rig_case(rig, wrong == NULL, "%s: all of the command died first, %" PRIu64 " rounds%s%s",
             trouble_names[trouble], rounds, wrong != NULL ? "; " : "", wrong != NULL ? wrong : "");
    if (wrong == NULL)
        rig_say("%s: at least %" PRId64 " ms before the next one began", trouble_names[trouble],
                play->closest_ms);
    act_end(&play->board->acts[play->acts - 1], 0);
    (void)kit_join(play->front, LEFT_MS);
}

/* Not even for three TTLs. */
static void stop_front(struct play *play)
{
    bool fine = begin_first(play);
    struct act *act = &play->board->acts[play->acts - 1];
    (void)kill(play->front, SIGSTOP);
    pid_t next = act_start(play->program, play->own, play->acts++, ttl);
    bool kept = !act_begins_within(act + 1, GRANTED_MS) && known_lives(&act->processes[0]);
    rig_case(play->rig, fine && kept, "a stopped front changes nothing: the lock is kept");
    (void)kill(play->front, SIGCONT);
    if (known_lives(&act->processes[0]))
        (void)kill(atomic_load(&act->processes[0].pid), SIGKILL);
    rig_case(play->rig, kit_join(play->front, LEFT_MS) == 128 + SIGKILL,
             "and it ends with its command");
    rig_case(play->rig, act_begins_within(act + 1, GRANTED_MS) && atomic_load(&act[1].beside) == 0,
             "which lets the next one in");
    act_end(act + 1, 0);
    (void)kit_join(next, LEFT_MS);
}

int main(int argc, char **argv)
{
    struct rig rig;
    if (argc == 3 && strcmp(argv[1], "--command") == 0)
        return act_play(strtoul(argv[2], NULL, 10));
    rig_open(&rig, argc, argv, /* rounds= */ 1, /* limit_s= */ 60, /* round_ms= */ 30000,
             /* shared_size= */ 1);
    struct play play = {.rig = &rig,
                        .board = kit_board(&rig, sizeof(struct board)),
                        .program = kit_program(argv[0]),
                        .own = argv[0]};
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 1;
    for (enum trouble trouble = STOPPED; trouble <= BROKEN; trouble++)
        play_trouble(&play, trouble);
    stop_front(&play);
    kit_collect();
    return rig_close(&rig);
}
