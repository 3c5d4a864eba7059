/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: the parties that use the store. Each opens its own store with its own session, in its
 * own process if the suite runs with several. With two processes the suite is one of them and has
 * all clients but one. A store that lives in one process and cannot be opened twice has one client,
 * which plays all parties. One that has sessions can: there a kill ends only the session.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_CLIENT_H
#define LEASEHOLD_TESTS_CONFORMANCE_CLIENT_H

#include "store/store.h"

#include <sys/types.h>

/* The number of different parties that one case may use. */
enum { CLIENTS_MIN = 4, CLIENTS_MAX = 16 };

/* One reply, and the index of its request among those sent together. */
struct client_reply {
    size_t of;
    struct store_reply reply;
};

/* The replies to one order; valid until the case ends. */
struct client_replies {
    size_t count;
    const struct client_reply *list;
};

/* processes: 1, 2, or the number of clients. This and all functions below fail the running case. */
void clients_open(const struct store_driver *driver, const char *url, unsigned processes);
void clients_close(void);
/* Ends and restarts all clients: after a failed case their state is undefined. */
void clients_restart(void);
unsigned clients_count(void);
bool clients_are_processes(void);
/* In processes of their own, or on a store in this process that has sessions. */
bool clients_can_be_killed(void);

/* Client numbers wrap around: with one client every number is client 0. */
uint64_t client_session(unsigned client);
/* Submits all of them, then steps. Several clients may do so at the same time. A client that sends
 * more than once before it receives gets the replies in that order. */
void client_send(unsigned client, const struct store_request *requests, size_t count);
struct client_replies client_receive(unsigned client);
/* Each is submitted from the callback of the previous one. */
struct client_replies client_chain(unsigned client, const struct store_request *requests,
                                   size_t count);
/* Submits the requests and closes the store without a step. */
void client_drop(unsigned client, const struct store_request *requests, size_t count);
/* Changes from watches since the last call. Waits for that number, or until the timeout. */
struct client_replies client_changes(unsigned client, size_t wanted, int64_t wait_ms);
/* The keys of the client's notifications since the last call, likewise. */
struct client_replies client_notices(unsigned client, size_t wanted, int64_t wait_ms);
void client_close(unsigned client);
void client_open(unsigned client); /* with a new session */
/* SIGKILL without cleanup: its records stay in the store. */
void client_kill(unsigned client);
void client_replace(unsigned client);
bool clients_have_inheritors(void);
/* A process that inherits the descriptor of the client's session, as a command would. */
pid_t client_inheritor(unsigned client);
void inheritor_kill(pid_t inheritor);

#endif
