/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted bugs. A harness is believed only after it caught them, so core and runtime can be built
 * with -Dmutants=true, and one of them switched on at run time. In every other build MUTANT() is
 * the constant false and leaves no trace in the code.
 */
#ifndef LEASEHOLD_CORE_MUTANT_H
#define LEASEHOLD_CORE_MUTANT_H

/* name, the bug in words; most are real bugs of locks in use */
#define CORE_MUTANT_LIST(X)                                                                     \
    X(RELEASE_UNCONDITIONAL, "release deletes the key whatever stands there")                   \
    X(RELEASE_BY_HOLDER, "release compares the holder's name, not the token")                   \
    X(EXPIRY_BY_LOCAL_CLOCK, "expiry by the stored time against the asker's own clock")         \
    X(REENTRY_BY_HOLDER, "'we already hold it' when the holder's name matches")                 \
    X(TAKEOVER_KEEPS_TOKEN, "takeover of a dead holder's grant without a new token")            \
    X(TOKEN_FROM_TIME, "token from the wall clock")                                             \
    X(KEY_NOT_COMPARED, "a/b = a-b: the stored key is not compared")                            \
    X(RENEWAL_FAILURE_IGNORED, "renewal failure only logged, the holder works on")              \
    X(DEADLINE_FROM_ANSWER, "the deadline is counted from the answer, not from the send")       \
    X(CLOCK_STOPS_IN_SUSPEND, "the deadline's clock stops while the host is suspended")         \
    X(MARKS_LEFT, "a rewriter leaves old marks, so token and expiry move")                      \
    X(NO_FALLBACK_LOOK, "a notification lost between look and subscribe is never repaired")     \
    X(OFFER_EVICTED, "release deletes the record although it is promised to a waiter")          \
    X(WAITER_FREED_WHILE_GRANTED, "a waiter that gives up does not see that it was granted")    \
    X(REQUEST_ID_IGNORED, "a repeated acquire waits for itself")                                \
    X(ACCEPT_UNCONDITIONAL, "an offer is accepted by an old notice, whatever stands by now")    \
    X(OFFER_IS_GRANT, "the release writes the next holder's grant, its lease from the notice")  \
    X(OFFER_NEVER_LAPSES, "an offer to a dead waiter is never passed on")                       \
    X(NEWCOMER_OVERTAKES, "a newcomer takes a key that is offered to a waiter")                 \
    X(PRIORITY_NEVER_AGES, "being passed over does not count")                                  \
    X(BREAK_IGNORED, "a broken grant can still be renewed")                                     \
    X(COOLDOWN_FORGOTTEN, "a cooldown does not outlive the next writer")                        \
    X(DELAY_AFTER_RELEASE, "lock-delay also after a clean release")                             \
    X(STALE_ANSWER_BELIEVED, "an answer to an earlier attempt is taken for the present one")    \
    X(CONFLICT_LOSES_LEASE, "a conflict alone costs the holder its lease")                      \
    X(READER_BESIDE_WRITER, "a reader enters beside a writer")                                  \
    X(SEEN_THEN_MARK, "'was it seen?' and 'mark it' are two steps, and two workers pass")       \
    X(DONE_FORGOTTEN, "a claim is granted although the id was done")                            \
    X(ID_EVICTED, "at its cap the store forgets an id that is still needed")                    \
    X(WATERMARK_TO_NOW, "a watermark moves to the present, not to the start of the poll")       \
    X(WATERMARK_BY_ANYBODY, "a watermark moves whatever it stands at, also backwards")          \
    X(ADVANCE_WITHOUT_MOVE, "an advance to where another has moved it is told as done")         \
    X(OVERLAP_IGNORED, "a poll by the store's clock has no overlap: late events are passed")    \
    X(RUNNING_IS_DONE, "a claim of what is running hears done: an unhandled event is passed")   \
    X(EQUAL_IS_PASSED, "an id at the watermark's own position is forgotten")                    \
    X(RETENTION_BY_TIME, "an id that waits for a watermark is forgotten when its time is over") \
    X(FINISH_UNFENCED, "a claimer that was dead too long finishes all the same")                \
    X(PAYLOAD_IGNORED, "the same id with another payload is taken for the same")

/* Of the runtime: only a simulation with several callers in a process sees them. */
#define RUNTIME_MUTANT_LIST(X)                                                              \
    X(HAND_OVER_KEEPS_TOKEN, "a hand-over among threads without a growing token")           \
    X(HAND_OVER_WITHOUT_END, "threads of one process hand over without a bound")            \
    X(HAND_OVER_PAST_OUTSIDERS, "hand-over although somebody outside is known to wait")     \
    X(HAND_OVER_AFTER_LOSS, "what was lost is handed over to the next thread")              \
    X(HAND_OVER_TO_NEWEST, "of the threads that wait the newest is next")                   \
    X(GRANT_FOR_NOBODY, "a waiter freed while being granted: its grant stays for nobody")   \
    X(BUSY_FROM_OLD_COPY, "known-busy is told although the process has lost or given back") \
    X(SILENCE_IS_BUSY, "a silent store is told as busy to who waited behind others")        \
    X(LOSS_UNTOLD, "a failed renewal is not told to the thread that holds it now")          \
    X(CLAIM_SHARED, "a claim of an id goes from one thread to another, with its result")    \
    X(DONE_FROM_OLD_COPY, "done is told from the copy, and the id may be new again")        \
    X(DONE_TOLD_TO_ALL, "done is told to all threads that wait, also with another payload")

#define MUTANT_LIST(X)  \
    CORE_MUTANT_LIST(X) \
    RUNTIME_MUTANT_LIST(X)

enum mutant {
    MUTANT_NONE,
#define MUTANT_NAME(name, description) M_##name,
    MUTANT_LIST(MUTANT_NAME)
#undef MUTANT_NAME
        MUTANT_COUNT
};

#ifdef LH_MUTANTS
extern enum mutant mutant_on;
#define MUTANT(name) (mutant_on == M_##name)
#else
#define MUTANT(name) 0
#endif

#endif
