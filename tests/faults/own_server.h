/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis server of the test's own (AOF, always), as a child of its fixture: so it is stopped and
 * killed like any other child. Its data are in the fixture's folder, and its port stays the same.
 */
#ifndef LEASEHOLD_TESTS_OWN_SERVER_H
#define LEASEHOLD_TESTS_OWN_SERVER_H

#include "fixture.h"

/* Starts it, or restarts it after a kill; returns when it replies. Sets the fixture's URL. */
bool own_server_start(struct fixture *fixture, size_t child);
uint16_t own_server_port(void);

#endif
