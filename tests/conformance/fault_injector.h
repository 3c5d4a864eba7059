/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted faults: a driver in front of another one that breaks one guarantee of store.h. The suite
 * counts as tested only if a case of it catches each of them.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_FAULT_INJECTOR_H
#define LEASEHOLD_TESTS_CONFORMANCE_FAULT_INJECTOR_H

#include "store/store.h"

/* In place of capabilities: the store has no clock and judges by sessions; and it knows those of
 * all grants, not of bound ones only. */
enum { FAULT_NEEDS_JUDGE = 1 << 30, FAULT_NEEDS_ALL_SESSIONS = 1 << 29 };

/* name, the cases that must catch it, the bits without which it has no effect, description */
#define FAULT_LIST(X)                                                                              \
    X(CLAIMS_LESS, "capabilities", STORE_TIME, "the store does not claim to have a clock")         \
    X(LOST_CONFLICT, "swap", 0, "a swap that was refused is answered with ok")                     \
    X(LAST_WRITER_WINS, "swap", 0, "a create overwrites the current record")                       \
    X(BARE_CONFLICT, "swap", 0, "a conflict does not carry the current record")                    \
    X(FORGETS_DONE, "once", 0, "a record without a holder is removed before its time")             \
    X(REUSED_REVISION, "revision", STORE_DELETES,                                                  \
      "revisions are counted per record and begin anew")                                           \
    X(REVISION_BEFORE, "swap", 0, "a write is answered with the revision before it")               \
    X(UNCONDITIONAL_DELETE, "delete", STORE_DELETES, "a delete removes any current record")        \
    X(DELETE_OF_NOTHING, "delete", STORE_DELETES, "a delete of an absent key is answered with ok") \
    X(DELETE_WITH_ALL, "release", STORE_TESTS_GRANT | STORE_DELETES,                               \
      "a release by token deletes the waiters, too")                                               \
    X(BLIND_RENEW, "renew", STORE_RENEWS_GRANT, "a renewal renews any current grant")              \
    X(LATE_RENEW, "renew: it does not", STORE_RENEWS_GRANT,                                        \
      "a renewal does not ask whether the lease has run out")                                      \
    X(RENEW_MOVES_TOKEN, "renew", STORE_RENEWS_GRANT, "a renewal leaves the mark of the grant")    \
    X(TOKEN_NOT_TESTED, "swap: a token", STORE_TESTS_GRANT,                                        \
      "a token beside a revision is not looked at")                                                \
    X(TIME_OF_ANSWER, "time", STORE_TIME,                                                          \
      "a record's time is that of the answer, not of the write")                                   \
    X(TIME_STANDS, "time", STORE_TIME, "the store's time moves with writes only")                  \
    X(PREFIX_EXACT, "list", 0, "a list has the key that is the prefix and no other")               \
    X(PREFIX_FOLDER, "list", 0, "a prefix ends at a slash")                                        \
    X(LIST_FIRST_PAGE, "list", 0, "a list ends after 100 keys")                                    \
    X(KEYS_FOLDED, "key", 0, "keys that differ in case only are the same")                         \
    X(KEYS_CUT, "key", 0, "keys are cut after 255 bytes")                                          \
    X(RECORDS_CUT, "record", 0, "records are cut after 32 KiB")                                    \
    X(BYTES_NORMALISED, "record", 0, "text is put into its composed form")                         \
    X(CACHED_READ, "model", 0, "a read is answered from an earlier read")                          \
    X(NO_OWN_OUTCOME, "batch", 0, "all of a batch have the outcome of its first")                  \
    X(UNANSWERED, "swap", 0, "a swap that is refused is not answered at all")                      \
    X(ANSWERED_TWICE, "swap", 0, "a swap is answered twice")                                       \
    X(WATCH_ONCE, "watch", STORE_WATCHES, "a watch ends with its first change")                    \
    X(WATCH_NO_DELETE, "watch: a delete", STORE_WATCHES | STORE_DELETES,                           \
      "a delete is not reported")                                                                  \
    X(WATCH_ALL, "watch: it keeps", STORE_WATCHES, "a watch reports the changes of all keys")      \
    X(HISTORY_NO_DELETE, "history", STORE_HISTORY | STORE_DELETES, "a history has no deletes")     \
    X(HISTORY_CUT, "history", STORE_HISTORY, "a history has the last change only")                 \
    X(ALL_DEAD, "session", STORE_SESSIONS, "everybody is called dead")                             \
    X(NONE_DEAD, "session", STORE_SESSIONS, "nobody is ever called dead")                          \
    X(ENDED_UNREPORTED, "judge", FAULT_NEEDS_JUDGE, "a lease that has expired is not named")       \
    X(ENDED_EARLY, "judge", FAULT_NEEDS_JUDGE, "every lease is named as expired")                  \
    X(ENDED_READS_ONLY, "judge", FAULT_NEEDS_JUDGE, "a conflict does not name what has ended")     \
    X(COOLING_UNREPORTED, "judge", FAULT_NEEDS_JUDGE, "the end of a cooldown is not reported")     \
    X(COOLING_EARLY, "judge", FAULT_NEEDS_JUDGE, "a cooldown is over at once")                     \
    X(DELAY_UNREPORTED, "judge", FAULT_NEEDS_JUDGE, "the end of a lock-delay is not reported")     \
    X(DELAY_EARLY, "judge", FAULT_NEEDS_JUDGE, "a lock-delay is over at once")                     \
    X(DEATH_ENDS_LEASE, "judge", FAULT_NEEDS_JUDGE | FAULT_NEEDS_ALL_SESSIONS,                     \
      "a lease is named as expired when its session has ended")                                    \
    X(WAKE_LOST, "wake", STORE_SESSIONS | STORE_WATCHES, "a named session is not woken")           \
    X(WAKE_TWICE, "wake", STORE_SESSIONS | STORE_WATCHES, "a named session is woken twice")        \
    X(WAKE_TELLS_BEFORE, "wake", STORE_TELLS, "a notice has the revision before the write")        \
    X(EPOCH_LOST, "epoch", STORE_EPOCH, "a reply does not have the epoch of the write")            \
    X(EPOCH_NOT_TESTED, "epoch", STORE_EPOCH, "a condition holds in whatever epoch")               \
    X(RAISE_IGNORED, "epoch", STORE_EPOCH, "a raise of the epoch is answered, and not made")

enum fault {
    FAULT_NONE,
#define FAULT_NAME(name, where, needs, text) FAULT_##name,
    FAULT_LIST(FAULT_NAME)
#undef FAULT_NAME
        FAULT_COUNT
};

const char *fault_name(enum fault fault);
const char *fault_text(enum fault fault);
unsigned fault_needs(enum fault fault);
const char *fault_where(enum fault fault);
/* FAULT_COUNT if no fault has that name. */
enum fault fault_named(const char *name);

/* The driver with that fault; one at a time. */
const struct store_driver *inject_fault(const struct store_driver *driver, enum fault fault);

#endif
