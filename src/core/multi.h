/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several keys, all or nothing (rule 8): acquired one after the other in sorted order, so that two
 * callers cannot deadlock; released in reverse. Each key is an ordinary lease. This file only
 * decides which one to start or release next and what to report to the caller. Pure.
 */
#ifndef LEASEHOLD_CORE_MULTI_H
#define LEASEHOLD_CORE_MULTI_H

#include "core/lease.h"

enum { MULTI_MAX = 16 };

enum multi_state { MULTI_ACQUIRING, MULTI_HELD, MULTI_LOST, MULTI_RELEASING, MULTI_ENDED };

enum multi_action { DO_NOTHING, DO_START, DO_CANCEL /* release the lease or give up */ };

struct multi {
    enum multi_state state;
    size_t count;
    size_t at; /* the key being acquired or released */
    enum outcome outcome;
    unsigned failures; /* releases in a row that the store did not carry out */
};

struct multi_output {
    enum multi_action act;
    size_t key;
    /* DO_CANCEL: the release may take a 4^n-th of the store timeout. So a store that is gone costs
     * all keys together less than one and a half timeouts. */
    unsigned quarterings;
    enum lease_notify notify; /* HELD once all are held; LOST once any is lost; ENDED */
    enum outcome outcome;
};

/* Sorts the keys in place; false if there are none, too many or duplicates. */
bool multi_sort(const char **keys, size_t count);
void multi_init(struct multi *multi, size_t count);
struct multi_output multi_start(struct multi *multi);
/* Handles a notification of one lease: HELD, LOST or ENDED with an outcome. */
struct multi_output multi_notify(struct multi *multi, size_t key, enum lease_notify notify,
                                 enum outcome outcome);
/* The caller is done, has stopped its work after LOST, or gives up while acquiring. */
struct multi_output multi_release(struct multi *multi);

#endif
