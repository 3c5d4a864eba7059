/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "sessions:", a store without a clock: it judges by sessions, as etcd does. It is in the memory of
 * this process. All that open it share its records, each with a session of its own, which ends when
 * the store is closed.
 */
#ifndef LEASEHOLD_TESTS_HARNESS_SESSION_DRIVER_H
#define LEASEHOLD_TESTS_HARNESS_SESSION_DRIVER_H

#include "store/store.h"

extern const struct store_driver session_driver;

#endif
