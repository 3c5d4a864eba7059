/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the checker's reports. The reader of a refused history did not write it, so a line
 * names the operation, its result and its window without the log. This file must not judge
 * anything.
 */
#include "linear_text.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {
    [LINEAR_ACQUIRE] = "acquire", [LINEAR_RENEW] = "renew",         [LINEAR_RELEASE] = "release",
    [LINEAR_STATUS] = "status",   [LINEAR_BREAK_NOW] = "break now", [LINEAR_CLEAR] = "clear",
};

static const char *const result_names[] = {
    [LINEAR_OK] = "ok",           [LINEAR_BUSY] = "busy",         [LINEAR_COOLING] = "cooling",
    [LINEAR_STALE] = "stale",     [LINEAR_FREE] = "free",         [LINEAR_HELD] = "held",
    [LINEAR_OFFERED] = "offered", [LINEAR_UNKNOWN] = "no answer",
};

static void arguments(const struct linear_op *op, char *out_text, size_t size)
{
    out_text[0] = '\0';
    if (op->kind == LINEAR_RENEW || op->kind == LINEAR_RELEASE) {
        (void)snprintf(out_text, size, " token %" PRIu64, op->token);
    } else if (op->kind == LINEAR_ACQUIRE && op->mode == LINEAR_SEMAPHORE) {
        (void)snprintf(out_text, size, " one of %" PRIu32, op->limit);
    } else if (op->kind == LINEAR_ACQUIRE) {
        (void)snprintf(out_text, size, op->mode == LINEAR_SHARED ? " shared" : " exclusive");
    }
}

void linear_text_op(const struct linear_op *op, size_t number, char *out_text, size_t size)
{
    char asked[48];
    char token[48] = "";
    arguments(op, asked, sizeof(asked));
    if (op->result == LINEAR_HELD || (op->kind == LINEAR_ACQUIRE && op->result == LINEAR_OK)) {
        (void)snprintf(token, sizeof(token), " token %" PRIu64, op->token);
    }
    (void)snprintf(out_text, size, "op %zu (client %d, %s%s → %s%s, %" PRId64 "..%" PRId64 " ms)",
                   number, op->client, kind_names[op->kind], asked, result_names[op->result], token,
                   op->call_ms, op->return_ms);
}

void linear_text_reason(const struct linear_step *step, char *out_text, size_t size)
{
    char holder[48] = "an acquire without an answer";
    if (step->reason_token != 0) {
        (void)snprintf(holder, sizeof(holder), "token %" PRIu64, step->reason_token);
    }
    switch (step->reason) {
    case LINEAR_REASON_HELD:
        (void)snprintf(out_text, size, "held by %s, which cannot end before %" PRId64 " ms", holder,
                       step->reason_ms);
        break;
    case LINEAR_REASON_COOLS:
        (void)snprintf(out_text, size, "cooling, which cannot end before %" PRId64 " ms",
                       step->reason_ms);
        break;
    case LINEAR_REASON_NOT_COOLING:
        (void)snprintf(out_text, size, "no cooldown runs");
        break;
    case LINEAR_REASON_TOKEN_OLD:
        (void)snprintf(out_text, size, "tokens up to %" PRIu64 " were granted before",
                       step->reason_token);
        break;
    case LINEAR_REASON_TOKEN_EARLY:
        (void)snprintf(out_text, size, "token %" PRIu64 ", which is smaller, is granted after it",
                       step->reason_token);
        break;
    case LINEAR_REASON_NOT_STANDING:
        (void)snprintf(out_text, size, "token %" PRIu64 " does not stand", step->reason_token);
        break;
    case LINEAR_REASON_NOT_BUSY:
        (void)snprintf(out_text, size, "nothing stands in its way and nobody is in line");
        break;
    default:
        (void)snprintf(out_text, size, "it has no place");
        break;
    }
}
