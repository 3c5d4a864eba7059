/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that wraps another one and sometimes returns a wrong reply, to test the checker. */
#ifndef LEASEHOLD_TESTS_FAULTS_FAULTY_DRIVER_H
#define LEASEHOLD_TESTS_FAULTS_FAULTY_DRIVER_H

#include "store/store.h"

enum defect {
    DEFECT_SWAPPED,  /* a swap that conflicted is answered with OK */
    DEFECT_OLD_READ, /* a read is answered with the previous record */
    DEFECTS,
};

/* The driver, before it is opened: which fault, around which driver. */
const struct store_driver *faulty_driver_prepare(enum defect defect,
                                                 const struct store_driver *inner);

#endif
