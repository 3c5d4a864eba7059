/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces claim.c in a build without GitHub: every call returns LH_USAGE. */
#include "face/lib/lib_internal.h"

#include "leasehold_github.h"

static enum lh_outcome claim_refuse(struct lh_report *report)
{
    return report_set(report, LH_USAGE, "usage: this leasehold was built without GitHub");
}

enum lh_outcome lh_claims_open(struct lh_client *client, const struct lh_claims_options *options,
                               struct lh_claims **out, struct lh_report *report)
{
    (void)client;
    (void)options;
    (void)out;
    return claim_refuse(report);
}

void lh_claims_close(struct lh_claims **claims)
{
    (void)claims; /* there is none */
}

enum lh_outcome lh_claim_next(struct lh_claims *claims, const struct lh_claim_options *options,
                              struct lh_lease **out_lease, struct lh_claim *out,
                              struct lh_report *report)
{
    (void)claims;
    (void)options;
    (void)out_lease;
    (void)out;
    return claim_refuse(report);
}

struct lh_claim_request *lh_claim_begin_start(struct lh_claims *claims,
                                              const struct lh_claim_options *options,
                                              struct lh_claim *out, lh_done_fn *done, void *user,
                                              struct lh_report *report)
{
    (void)claims;
    (void)options;
    (void)out;
    (void)done;
    (void)user;
    (void)claim_refuse(report);
    return NULL;
}

void lh_claim_cancel(struct lh_claim_request *request)
{
    (void)request; /* there is none */
}

int lh_claims_fd(const struct lh_claims *claims)
{
    (void)claims;
    return -1;
}

enum lh_outcome lh_claims_step(struct lh_claims *claims)
{
    (void)claims;
    return LH_USAGE;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the signature of the other build */
enum lh_outcome lh_claim_finish(struct lh_claims *claims, struct lh_lease **lease, bool success,
                                /* NOLINTNEXTLINE(readability-non-const-parameter): same */
                                const char *text, bool *out_done, struct lh_report *report)
{
    (void)claims;
    (void)lease;
    (void)success;
    (void)text;
    (void)out_done;
    return claim_refuse(report);
}
