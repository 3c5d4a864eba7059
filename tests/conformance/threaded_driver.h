/* SPDX-License-Identifier: Apache-2.0 */
/* Any driver carried on in a thread of its own (store/store_thread.h), as a driver: the same
 * promises. */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_THREADED_DRIVER_H
#define LEASEHOLD_TESTS_CONFORMANCE_THREADED_DRIVER_H

#include "store/store.h"

/* One at a time. */
const struct store_driver *threaded_driver(const struct store_driver *driver);

#endif
