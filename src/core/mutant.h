/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted bugs: a harness is trusted only after it has caught them. With -Dmutants=true, core and
 * runtime contain all of them, and one is switched on at run time. In every other build MUTANT() is
 * the constant false and leaves no code.
 */
#ifndef LEASEHOLD_CORE_MUTANT_H
#define LEASEHOLD_CORE_MUTANT_H

/* name, description; most are bugs found in other locks */
#define CORE_MUTANT_LIST(X)                                                                      \
    X(RELEASE_UNCONDITIONAL, "release deletes the key without a condition")                      \
    X(RELEASE_BY_HOLDER, "release compares the holder's name, not the token")                    \
    X(EXPIRY_BY_LOCAL_CLOCK, "expiry compares the stored time with the client's own clock")      \
    X(REENTRY_BY_HOLDER, "'we already hold it' when the holder's name matches")                  \
    X(TAKEOVER_KEEPS_TOKEN, "takeover of a dead holder's grant without a new token")             \
    X(TOKEN_FROM_TIME, "token from the wall clock")                                              \
    X(KEY_NOT_COMPARED, "a/b = a-b: the stored key is not compared")                             \
    X(RENEWAL_FAILURE_IGNORED, "renewal failure only logged, the holder works on")               \
    X(DEADLINE_FROM_ANSWER, "the deadline is counted from the reply, not from the send")         \
    X(CLOCK_STOPS_IN_SUSPEND, "the deadline's clock stops while the host is suspended")          \
    X(MARKS_LEFT, "a rewrite keeps THIS_WRITE, so token and expiry move")                        \
    X(NO_FALLBACK_LOOK, "a notification lost between read and subscribe is never made up for")   \
    X(OFFER_EVICTED, "release deletes the record although it has waiters")                       \
    X(WAITER_FREED_WHILE_GRANTED, "a waiter that gives up ignores that it was granted")          \
    X(REQUEST_ID_IGNORED, "a repeated acquire waits for itself")                                 \
    X(REQUEST_ID_SHARED, "another holder that repeats a request id gets its grant")              \
    X(ACCEPT_UNCONDITIONAL, "an outdated notification accepts an offer without a condition")     \
    X(OFFER_IS_GRANT, "the release writes the next holder's grant, valid from the notification") \
    X(OFFER_NEVER_LAPSES, "an offer to a dead waiter is never passed on")                        \
    X(TAKEOVER_AT_ONCE, "the next in line takes over an offer without waiting for the first")    \
    X(PASSED_OVER_LOSES_TICKET, "a live waiter that was passed over returns as the last one")    \
    X(PASSED_OVER_AGAIN, "a slow waiter is passed over each time that it is offered the key")    \
    X(OFFER_GRACE_FIXED, "an offer is passed on after 1 s on every store, also on a slow one")   \
    X(QUEUE_LIMIT_IGNORED, "the queue grows beyond what the store admits")                       \
    X(NEWCOMER_OVERTAKES, "a newcomer takes a key that is offered to a waiter")                  \
    X(PRIORITY_NEVER_AGES, "being passed over does not raise the priority")                      \
    X(BREAK_IGNORED, "a broken grant can still be renewed")                                      \
    X(COOLDOWN_FORGOTTEN, "a cooldown does not outlive the next writer")                         \
    X(DELAY_AFTER_RELEASE, "lock-delay also after a clean release")                              \
    X(STALE_ANSWER_BELIEVED, "a reply to an earlier attempt is taken for the current one")       \
    X(CONFLICT_LOSES_LEASE, "a conflict alone costs the holder its lease")                       \
    X(READER_BESIDE_WRITER, "a reader is admitted together with a writer")                       \
    X(SEEN_THEN_MARK, "'was it seen?' and 'mark it' are two steps, and two workers pass")        \
    X(DONE_FORGOTTEN, "a claim is granted although the id was done")                             \
    X(ID_EVICTED, "at its limit the store drops an id that is still needed")                     \
    X(WATERMARK_TO_NOW, "a watermark moves to the current time, not to the start of the poll")   \
    X(WATERMARK_BY_ANYBODY, "a watermark moves from any value, also backwards")                  \
    X(ADVANCE_WITHOUT_MOVE, "an advance that another client has made is reported as done")       \
    X(OVERLAP_IGNORED, "a poll by the store's clock has no overlap: late events are missed")     \
    X(RUNNING_IS_DONE, "a claim of a running id returns done: an unhandled event is missed")     \
    X(EQUAL_IS_PASSED, "an id at the watermark's own position is dropped")                       \
    X(RETENTION_BY_TIME, "an id that awaits a watermark is dropped when its retention ends")     \
    X(FINISH_UNFENCED, "a claimer whose claim has expired can still finish")                     \
    X(PAYLOAD_IGNORED, "the same id with another payload is accepted")                           \
    X(JUDGED_BY_TIME, "a store without a clock: the observer's clock ends a lease")              \
    X(ENDED_TOKEN_IGNORED, "a lease that the store reports as expired never ends")               \
    X(ENDED_TOKEN_ENDS_ALL, "one expired lease of a key ends the others, too")                   \
    X(DEAD_SESSION_IGNORED, "the grant of a dead process blocks until its TTL ends")             \
    X(UNBOUND_ENDS_WITH_SESSION, "a grant by token alone ends with the process that made it")    \
    X(COOLING_END_IGNORED, "the store reports the end of a cooldown, and it blocks on")          \
    X(DELAY_END_IGNORED, "the store reports the end of a lock-delay, and it blocks on")          \
    X(DELAY_FROM_RENEWAL, "a lock-delay counts from the last renewal, not from the end")         \
    X(SESSION_RENEWED_BY_READ, "a renewal that only read the record counts from that read")      \
    X(SESSION_RENEWAL_UNCHECKED, "the session lives, so a grant that is gone counts as renewed") \
    X(EPOCH_IGNORED, "a write of an old epoch passes if the revision is the same number")        \
    X(EPOCH_FORGOTTEN, "a grant after a raised epoch gets a token of the old one")

/* Bugs of the runtime: only a simulation with several callers per process can catch them. */
#define RUNTIME_MUTANT_LIST(X)                                                                  \
    X(HAND_OVER_KEEPS_TOKEN, "a hand-off between threads without a growing token")              \
    X(HAND_OVER_WITHOUT_END, "threads of one process hand off without a bound")                 \
    X(HAND_OVER_PAST_OUTSIDERS, "hand-off although a waiter of another process is known")       \
    X(HAND_OVER_AFTER_LOSS, "a lost grant is handed off to the next thread")                    \
    X(HAND_OVER_TO_NEWEST, "the newest waiting thread is next")                                 \
    X(GRANT_FOR_NOBODY, "a waiter freed while being granted: its grant stays without a holder") \
    X(BUSY_FROM_OLD_COPY, "busy is reported from the cache after a loss or release")            \
    X(SILENCE_IS_BUSY, "an unresponsive store is reported as busy to a local waiter")           \
    X(LOSS_UNTOLD, "a failed renewal is not reported to the thread that holds the lease")       \
    X(CLAIM_SHARED, "a claim of an id goes from one thread to another, with its result")        \
    X(DONE_FROM_OLD_COPY, "done is reported from the cache, although the id may be new again")  \
    X(DONE_TOLD_TO_ALL, "done is reported to all waiting threads, also with another payload")   \
    X(PAUSED_IS_SERVED, "a waiter whose caller is away is granted the key")

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
