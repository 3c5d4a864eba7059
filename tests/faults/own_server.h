/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis server of the test's own (AOF, always), in a seat of its rig: so it is stopped and killed
 * like any other child. Its data are in the rig's folder, and its port stays the same.
 */
#ifndef LEASEHOLD_TESTS_OWN_SERVER_H
#define LEASEHOLD_TESTS_OWN_SERVER_H

#include "fixture.h"

/* Starts it, also again after it was killed; back when it answers. The rig's URL is its own then.
 */
bool own_server_start(struct fixture *fixture, size_t child);
uint16_t own_server_port(void);

#endif
