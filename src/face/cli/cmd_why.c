/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold why: explains the state of a key to people on call: the holder, whether it is alive,
 * the end of its lease, the waiters, the last changes, and what can be done. It changes nothing.
 */
#include "face/cli/why.h"

#include <stdio.h>
#include <string.h>

/* ---- changes ---- */

static void why_add_past(const struct lh_view *view, struct text *out)
{
    switch (view->state) {
    case LH_HELD:
        text_add(out, view->kind == LH_ONCE ? "run by " : "held by ");
        break;
    case LH_OFFERED:
        text_add(out, "offered to ");
        break;
    case LH_COOLING_DOWN:
        text_add(out, view->kind != LH_ONCE ? "done, and cooling, by "
                      : view->status == 0   ? "done by "
                                            : "failed for ");
        break;
    case LH_DELAYED:
        text_add(out, "in the lock-delay after a crash of ");
        break;
    case LH_FREE:
        text_add(out, "free");
        return;
    case LH_UNREADABLE:
        text_add(out, "unreadable: ");
        text_add(out, view->text);
        return;
    }
    text_add(out, view->holder[0] != '\0' ? view->holder : "an unknown holder");
}

/* The state after the change, without the times of that moment. */
static void describe_change(const struct lh_view *view, struct why_change *out)
{
    struct text text;
    text_init(&text, out->text, sizeof out->text);
    if (view->kind == LH_WATERMARK) {
        text_add(&text, "moved to ");
        text_add_brief(&text, view->result, WHY_LINE / 2);
        text_add(&text, " by ");
        text_add(&text, view->holder);
    } else {
        why_add_past(view, &text);
    }
    if (view->holders > 1) {
        text_add(&text, " and ");
        text_add_u64(&text, view->holders - 1);
        text_add(&text, view->holders > 2 ? " others" : " other");
    }
    if (view->token != 0) {
        text_add(&text, ", token ");
        text_add_u64(&text, view->token);
    }
    if (view->waiters > 0) {
        text_add(&text, ", ");
        text_add_u64(&text, view->waiters);
        text_add(&text, " waiting");
    }
    if (view->broken)
        text_add(&text, ", asked to stop");
    if (out->repeat > 0) {
        text_add(&text, "; renewals: ");
        text_add_u64(&text, out->repeat);
    }
    text_clean(out->text, text.length);
}

/* A renewal writes the same again; it is counted with the change that it repeats. */
static bool is_repeated(const struct why_change *newer, const struct lh_view *view)
{
    return newer->state == view->state && newer->kind == view->kind &&
           newer->token == view->token && newer->holders == view->holders &&
           newer->waiters == view->waiters && newer->broken == view->broken &&
           view->state == LH_HELD && strcmp(newer->holder, view->holder) == 0;
}

static bool why_on_change(void *user, const struct lh_view *view)
{
    struct why *why = user;
    struct why_change *change = why->change_count > 0 ? &why->changes[why->change_count - 1] : NULL;
    unsigned repeat = 0;
    if (change != NULL && is_repeated(change, view)) {
        repeat = change->repeat + 1;
    } else if (why->change_count > WHY_CHANGES) {
        return false;
    } else {
        change = &why->changes[why->change_count++];
    }
    *change = (struct why_change){.repeat = repeat,
                                  .ago_ms = view->written_ago_ms,
                                  .state = view->state,
                                  .kind = view->kind,
                                  .token = view->token,
                                  .holders = view->holders,
                                  .waiters = view->waiters,
                                  .broken = view->broken};
    (void)format_written_time(view, change->at);
    (void)snprintf(change->holder, sizeof change->holder, "%s", view->holder);
    describe_change(view, change);
    return true;
}

/* ---- the command ---- */

static bool why_on_view(void *user, const struct lh_view *view)
{
    const struct why *why = user;
    if (why->context->settings.json)
        why_to_json(why, view);
    else
        why_to_text(why, view);
    return false;
}

static int cmd_why(struct context *context)
{
    static struct why why;
    const char *key = context->args[0];
    struct lh_report report = LH_REPORT_INIT;
    why.context = context;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    /* Before the state, so that no change is newer. A failure will repeat itself below. */
    why.has_history = lh_history(context->client, key, why_on_change, &why, NULL) == LH_OK;
    if (lh_status_details(context->client, key, why_on_view, &why, &report) != LH_OK)
        return output_report(context, key, &report);
    return EXIT_DONE;
}

const struct command command_why = {
    .name = "why",
    .args = "KEY",
    .summary = "explain who blocks a key, and what can be done about it",
    .about =
        "Explains the state of KEY to people on call: the holder, since when, its host and "
        "processes, whether it is alive, when the lease ends by itself, the waiters, the last "
        "changes, and what can be done, with the effect and the risk of each choice. why changes "
        "nothing.\n\n"
        "A file store knows the processes that keep a lease. In other stores the name of the "
        "holder is all there is: the default name, HOST:PID, is looked up if it is of this host. "
        "Otherwise it cannot be known whether the holder is alive; a recent renewal shows that it "
        "was. A holder without a process here is gone only if half its TTL has passed without a "
        "renewal: before, it may run in a container with the same host name. Of a lock that "
        "another program holds, only the name and the end are known.\n\n"
        "An id is named once:ID, a watermark watermark:NAME. The status is 0 if the key could be "
        "read, free or not. With --json held_by, queue, changes and choices are lists, besides "
        "the members of status.",
    .example = "  leasehold why nightly\n"
               "  leasehold why nightly --json | jq -r '.held_by[].liveness'",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_why,
};
