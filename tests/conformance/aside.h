/* SPDX-License-Identifier: Apache-2.0 */
/* Any driver carried on in a thread of its own (store/beside.h), as a driver: the same promises. */
#ifndef LEASEHOLD_TESTS_ASIDE_H
#define LEASEHOLD_TESTS_ASIDE_H

#include "store/store.h"

/* One at a time. */
const struct store_driver *aside_driver(const struct store_driver *driver);

#endif
