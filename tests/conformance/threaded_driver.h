/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps any driver so that it runs in its own thread (store/store_thread.h), with the same
 * guarantees. */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_THREADED_DRIVER_H
#define LEASEHOLD_TESTS_CONFORMANCE_THREADED_DRIVER_H

#include "store/store.h"

/* One at a time. */
const struct store_driver *threaded_driver(const struct store_driver *driver);

#endif
