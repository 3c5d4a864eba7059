/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver in front of another one that lies now and then, to show that the checker would notice.
 */
#ifndef LEASEHOLD_TESTS_FAULTS_FAULTY_DRIVER_H
#define LEASEHOLD_TESTS_FAULTS_FAULTY_DRIVER_H

#include "store/store.h"

enum defect {
    DEFECT_SWAPPED,  /* a swap that came too late is answered with OK */
    DEFECT_OLD_READ, /* a read is answered with what stood before */
    DEFECTS,
};

/* The driver, before it is opened: which lie, in front of whom. */
const struct store_driver *faulty_driver_prepare(enum defect defect,
                                                 const struct store_driver *honest);

#endif
