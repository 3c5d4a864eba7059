/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls about workloads share, blocking or started; nobody else includes it. */
#ifndef LEASEHOLD_FACE_LIB_WORKLOAD_INSIDE_H
#define LEASEHOLD_FACE_LIB_WORKLOAD_INSIDE_H

#include "face/lib/lib_inside.h"
#include "leasehold_workload.h"
#include "store/k8s/workloads.h"

#include <pthread.h>

enum { WORKLOADS_HANDLE = 0x301d5, STARTED_MOST = 64, REQUEST_SIZE = WORKLOAD_WORDS + 1 };

struct started;

struct lh_workloads {
    uint32_t magic;
    pid_t process; /* a forked child shares its connection with the parent */
    struct workloads *inside;
    /* What was started, and is not over. */
    pthread_mutex_t lock;    /* of all that follows */
    pthread_mutex_t calling; /* a function of the user's; those of one handle do not meet */
    pthread_cond_t ended;
    struct started *first;
    size_t count;
    bool closing;
    int stop; /* an eventfd that ends them all; −1: nothing was started yet */
    struct workloads_kind kind;
};

enum workload_verb { WORKLOAD_RUN, WORKLOAD_LOOK, WORKLOAD_REMOVE };

/* What is asked for; the words are the caller's. */
struct workload_call {
    enum workload_verb verb;
    struct workloads_wish wish; /* run; of the others target and request alone, which may be NULL */
    char own[REQUEST_SIZE];     /* a request id, where none was given */
};

/* workload.c */
/* LH_OK, or what is wrong with it, in the report. */
enum lh_outcome workload_prepare(struct lh_workloads *handle, enum workload_verb verb,
                                 const char *target, const char *request_id,
                                 const struct lh_workload_options *options,
                                 struct workload_call *out, struct lh_report *report);
void workload_do(struct workloads *inside, const struct workload_call *call,
                 struct workloads_answer *answer);
enum lh_outcome workload_tell(const struct workloads_answer *answer, const char *target,
                              struct lh_workload *out, struct lh_report *report);

/* workload_start.c */
/* Is this one of the threads that work for the handle? */
bool started_is_within(struct lh_workloads *handle);
/* Ends all of them. False when one of them asks for it. */
bool started_end(struct lh_workloads *handle);

#endif
