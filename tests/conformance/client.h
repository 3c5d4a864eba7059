/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seats: the parties at the store. Each has a store of its own open, with a session of its own, in
 * a process of its own when the suite runs with several; with two, the suite is one of them and
 * has all seats but one. Only a store that lives in one process and cannot be opened twice has a
 * single seat, which then plays all parties.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_CLIENT_H
#define LEASEHOLD_TESTS_CONFORMANCE_CLIENT_H

#include "store/store.h"

#include <sys/types.h>

/* So many parties may meet in one case without two of them being the same. */
enum { CLIENTS_MIN = 4, CLIENTS_MAX = 16 };

/* One answer and the number of the request, among those asked together, that it is to. */
struct client_reply {
    size_t of;
    struct store_reply reply;
};

/* What a seat brought back; valid until the case ends. */
struct client_replies {
    size_t count;
    const struct client_reply *list;
};

/* Processes: 1, 2, or as many as there shall be seats. Fails the running case, as all of these. */
void clients_open(const struct store_driver *driver, const char *url, unsigned processes);
void clients_close(void);
/* After a failed case nobody knows what they are about: all are ended and begin anew. */
void clients_restart(void);
unsigned clients_count(void);
bool clients_are_processes(void);

/* Seats are counted round: with one there is seat 0 only, under many numbers. */
uint64_t client_session(unsigned client);
/* Submits all of them, then steps. Several seats can be at it at the same time; whoever sends more
 * than once before receiving is answered in that order. */
void client_send(unsigned client, const struct store_request *requests, size_t count);
struct client_replies client_receive(unsigned client);
/* Each is submitted from the callback of the one before. */
struct client_replies client_chain(unsigned client, const struct store_request *requests,
                                   size_t count);
/* Submitted, and the store closed before it could do anything about them. */
void client_drop(unsigned client, const struct store_request *requests, size_t count);
/* What watches told since the last call; waits until so many came, or for so long. */
struct client_replies client_changes(unsigned client, size_t wanted, int64_t wait_ms);
/* The keys that the seat was woken for, likewise. */
struct client_replies client_notices(unsigned client, size_t wanted, int64_t wait_ms);
void client_close(unsigned client);
void client_open(unsigned client); /* with a new session */
/* SIGKILL, and nothing else: what it left in the store stays there. */
void client_kill(unsigned client);
void client_replace(unsigned client);
bool clients_have_inheritors(void); /* can they? */
/* A process that inherits from the seat what keeps its session alive, as a command would. */
pid_t client_inheritor(unsigned client);
void inheritor_kill(pid_t inheritor);

#endif
