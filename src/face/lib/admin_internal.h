/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files behind leasehold_admin.h that have no client. */
#ifndef LEASEHOLD_FACE_LIB_ADMIN_INTERNAL_H
#define LEASEHOLD_FACE_LIB_ADMIN_INTERNAL_H

#include "face/lib/lib_internal.h"

#include "leasehold_admin.h"
#include "store/admin.h"

/* Sets the report to "OUTCOME: " and the text. */
enum lh_outcome admin_report(struct lh_report *report, enum lh_outcome outcome, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));
/* The outcome for a URL whose scheme has no driver: LH_UNAVAILABLE for a planned one. */
enum lh_outcome admin_report_scheme(const char *url, struct lh_report *report);
/* "OUTCOME: URL: why", without the URL's secrets; LH_USAGE if `why` begins with "usage: ". */
enum lh_outcome admin_report_url(struct lh_report *report, enum lh_outcome outcome, const char *url,
                                 const char *why);
bool admin_is_key(const char *key);

/* admin_workload.c */
collect_objects_fn admin_collect_objects;
/* NULL, or what is wrong with the conditions by which an object ends. */
const char *admin_broken_conditions(const struct collect_options *options);

#endif
