/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run` that cannot go on, with a TTL of 2 s: its guardian is stopped, its disk hangs
 * (strace holds every sync back), an operator breaks the lock. All of the command must be dead
 * before the next one is let in. Stopping the process that the user started changes nothing.
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
    TTL_MS = 2000,
    GRANTED_MS = 3 * TTL_MS, /* by then the next one must be in */
    LEFT_MS = 5000,
    LOST_STATUS = 76,
};

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
    play->front = act_start(play->program, play->own, play->acts++, "2s");
    return act_begins_within(&play->board->acts[play->acts - 1], ACT_PATIENCE_MS);
}

static pid_t hang_disk(pid_t guardian)
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
    pid_t tracer = kit_start("/usr/bin/strace", words);
    rig_pause_us(300000); /* it attaches */
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

/* What is wrong with this round; NULL: nothing. */
static const char *play_round(struct play *play, enum trouble trouble)
{
    struct act *before = &play->board->acts[play->acts - 1], *after = before + 1;
    struct known guardian;
    pid_t helper = 0;
    known_note(&guardian, kit_guardian(play->front));
    if (guardian.pid <= 0)
        return "there is no guardian";
    pid_t next = act_start(play->program, play->own, play->acts++, "2s");
    if (!act_is_in_line(next))
        return "the next one is not in line";
    if (trouble == STOPPED)
        (void)kill(guardian.pid, SIGSTOP);
    else
        helper = trouble == HANGS ? hang_disk(guardian.pid) : break_lock(play);
    int64_t gone_us = 0, end_ms = live_now_ms() + GRANTED_MS;
    while (atomic_load(&after->began_us) == 0 && live_now_ms() < end_ms) {
        if (gone_us == 0 && act_is_gone(before)) {
            gone_us = rig_now_us();
            if (trouble == HANGS)
                (void)kill(helper, SIGTERM); /* the disk is back: others wait for that sync, too */
        }
        rig_pause_us(1000);
    }
    if (gone_us == 0 && trouble == HANGS)
        (void)kill(helper, SIGTERM);
    if (!act_begins_within(after, GRANTED_MS))
        return "the next one did not come in";
    if (gone_us == 0 && act_is_gone(before)) /* the next one was faster than our look at it */
        gone_us = atomic_load(&after->began_us);
    if (atomic_load(&after->beside) > 0 || gone_us == 0)
        return "the next one came in beside it";
    int64_t between_ms = (atomic_load(&after->began_us) - gone_us) / 1000;
    play->closest_ms = between_ms < play->closest_ms ? between_ms : play->closest_ms;
    int status = kit_join(play->front, LEFT_MS);
    play->front = next;
    kit_collect();
    if (!known_ends_within(&guardian, LEFT_MS))
        return "the guardian was left";
    return status == LOST_STATUS ? NULL : "the exit status is another";
}

static void play_trouble(struct play *play, enum trouble trouble)
{
    struct rig *rig = play->rig;
    const char *wrong = begin_first(play) ? NULL : "nothing began";
    uint64_t rounds = 0;
    play->closest_ms = INT64_MAX;
    while (wrong == NULL && rounds < rig->rounds) {
        wrong = play_round(play, trouble);
        rounds += wrong == NULL ? 1 : 0;
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
    pid_t next = act_start(play->program, play->own, play->acts++, "2s");
    bool kept = !act_begins_within(act + 1, GRANTED_MS) && known_lives(&act->processes[0]);
    rig_case(play->rig, fine && kept, "a stopped front changes nothing: the lock is kept");
    (void)kill(play->front, SIGCONT);
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
