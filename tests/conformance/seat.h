/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seats: the parties at the store. Each has a store of its own open, with a session of its own, in
 * a process of its own when the suite runs with several; with two, the suite is one of them and
 * has all seats but one. Only a store that lives in one process and cannot be opened twice has a
 * single seat, which then plays all parties.
 */
#ifndef LEASEHOLD_TESTS_SEAT_H
#define LEASEHOLD_TESTS_SEAT_H

#include "store/store.h"

#include <sys/types.h>

/* So many parties may meet in one case without two of them being the same. */
enum { SEATS_MIN = 4, SEATS_MAX = 16 };

/* One answer and the number of the request, among those asked together, that it is to. */
struct tiding {
    size_t of;
    struct store_answer answer;
};

/* What a seat brought back; valid until the case ends. */
struct tidings {
    size_t count;
    const struct tiding *list;
};

/* Processes: 1, 2, or as many as there shall be seats. Fails the running case, as all of these. */
void seats_open(const struct store_driver *driver, const char *url, unsigned processes);
void seats_close(void);
/* After a failed case nobody knows what they are about: all are ended and begin anew. */
void seats_renew(void);
unsigned seats_count(void);
bool seats_are_processes(void);

/* Seats are counted round: with one there is seat 0 only, under many numbers. */
uint64_t seat_session(unsigned seat);
/* Submits all of them, then steps. Several seats can be at it at the same time; whoever sends more
 * than once before receiving is answered in that order. */
void seat_send(unsigned seat, const struct store_request *requests, size_t count);
struct tidings seat_receive(unsigned seat);
/* Each is submitted from the callback of the one before. */
struct tidings seat_chain(unsigned seat, const struct store_request *requests, size_t count);
/* Submitted, and the store closed before it could do anything about them. */
void seat_drop(unsigned seat, const struct store_request *requests, size_t count);
/* What watches told since the last call; waits until so many came, or for so long. */
struct tidings seat_changes(unsigned seat, size_t wanted, int64_t wait_ms);
/* The keys that the seat was woken for, likewise. */
struct tidings seat_notices(unsigned seat, size_t wanted, int64_t wait_ms);
void seat_close(unsigned seat);
void seat_open(unsigned seat); /* with a new session */
/* SIGKILL, and nothing else: what it left in the store stays there. */
void seat_kill(unsigned seat);
void seat_replace(unsigned seat);
bool seats_have_heirs(void); /* can they? */
/* A process that inherits from the seat what keeps its session alive, as a command would. */
pid_t seat_heir(unsigned seat);
void heir_kill(pid_t heir);

#endif
