/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of `leasehold doctor` share: findings, which are said as they are made.
 * cmd_doctor.c looks at the surroundings, doctor_file.c at a file store, doctor_redis.c and
 * doctor_k8s.c at servers.
 */
#ifndef LEASEHOLD_FACE_CLI_DOCTOR_H
#define LEASEHOLD_FACE_CLI_DOCTOR_H

#include "face/cli/cli.h"

enum finding { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM };

struct doctor {
    struct context *context;
    unsigned problems;
};

/* One line about one thing, on stdout. `remedy` says what to do; NULL where the words do. */
void doctor_report(struct doctor *doctor, enum finding finding, const char *about,
                   const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* May we look at a key? `remedy`: where those find help who may not. */
void doctor_check_rights(struct doctor *doctor, const char *remedy);
/* The file store at that path. Makes nothing that is not there. */
void doctor_check_file(struct doctor *doctor, const char *path);
#ifndef LH_WITHOUT_REDIS
void doctor_check_redis(struct doctor *doctor, const char *url);
#endif
#ifndef LH_WITHOUT_KUBERNETES
void doctor_check_k8s(struct doctor *doctor, const char *url);
/* For --verbose: a store that shall write Events, and may not. */
void doctor_warn_events(const struct context *context);
#endif

#endif
