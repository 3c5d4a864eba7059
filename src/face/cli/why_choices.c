/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choices of an operator about a key, and the risk of each. The commands can be pasted into a
 * shell: key and store are quoted. Nothing is run here.
 */
#include "face/cli/suggest.h"
#include "face/cli/why.h"

#include "wire/duration.h"

#include <stdio.h>
#include <string.h>

/* A store from the environment applies to the next command, too. One with a secret is not repeated:
 * the shown form cannot be used. */
static void add_store(struct text *out, const struct context *context)
{
    if (context->store_from == FROM_DEFAULT || context->store_from == FROM_ENVIRONMENT)
        return;
    text_add(out, " --store ");
    if (strcmp(context->shown, context->url) == 0)
        suggest_add_quoted(out, context->shown);
    else
        text_add(out, "URL");
}

/* "leasehold VERB KEY OPTIONS"; a key that looks like an option comes last. */
static struct why_choice *add_choice(const struct context *context, struct why_choice *choice,
                                     const char *name, const char *verb, const char *key,
                                     const char *options)
{
    struct text command;
    bool like_option = key[0] == '-';
    text_init(&command, choice->command, sizeof choice->command);
    choice->name = name;
    choice->risk[0] = '\0';
    text_add(&command, "leasehold");
    add_store(&command, context);
    text_add(&command, " ");
    text_add(&command, verb);
    if (!like_option) {
        text_add(&command, " ");
        suggest_add_quoted(&command, key);
    }
    text_add(&command, options);
    if (like_option) {
        text_add(&command, " -- ");
        suggest_add_quoted(&command, key);
    }
    return choice;
}

static void set_risk(struct why_choice *choice, const char *text)
{
    (void)snprintf(choice->risk, sizeof choice->risk, "%s", text);
}

/* Adds to the effect of a break that it is not only one holder's. */
static void add_all_holders(const struct lh_view *view, struct why_choice *choice)
{
    size_t length = strlen(choice->risk);
    if (view->holders > 1)
        (void)snprintf(choice->risk + length, sizeof choice->risk - length,
                       " All %u holders lose it.", (unsigned)view->holders);
}

/* ---- a held key ---- */

static size_t add_wait(const struct context *context, const struct lh_view *view,
                       struct why_choice *out)
{
    set_risk(add_choice(context, out, "wait", "watch", view->key, ""),
             "Wait, and see it change. No risk: the work goes on, and waiters get the key in their "
             "order.");
    return 1;
}

static size_t add_wait_for_stalled(const struct context *context, const struct lh_view *view,
                                   struct why_choice *out)
{
    size_t count = add_wait(context, view, out);
    set_risk(out, "Wait until the lease of the stopped holder ends: it does not renew it. If it is "
                  "continued later, it may still write before it notices the loss; only a check "
                  "of tokens refuses these writes.");
    return count;
}

static size_t add_continue(const struct why_holder *all, struct why_choice *out)
{
    size_t stopped = 0;
    struct text command;
    text_init(&command, out->command, sizeof out->command);
    text_add(&command, "kill -CONT");
    for (size_t i = 0; i < all->process_count; i++) {
        if (all->processes[i].state != 'T')
            continue;
        stopped++;
        text_add(&command, " ");
        text_add_i64(&command, all->processes[i].pid);
    }
    out->name = "continue";
    set_risk(out, "Let the stopped work go on. No risk for the lock; somebody may have stopped it "
                  "for a reason.");
    return stopped > 0 ? 1 : 0;
}

static size_t why_add_release(const struct context *context, const struct lh_view *view,
                              const struct why_holder *all, struct why_choice *out)
{
    char options[64];
    if (all->liveness != WHY_NO_PROCESS || view->kind != LH_LOCK)
        return 0;
    (void)snprintf(options, sizeof options, " --token %llu", (unsigned long long)all->holder.token);
    (void)add_choice(context, out, "release", "release", view->key, options);
    (void)snprintf(out->risk, sizeof out->risk,
                   "Release it for %s, if you know that the work has ended. If it has not, two "
                   "workers run at the same time.%s",
                   view->holders > 1 ? all->holder.name : "its holder",
                   view->holders > 1 ? " The other holders keep it." : "");
    return 1;
}

static size_t why_add_break(const struct context *context, const struct lh_view *view,
                            const struct why_holder *all, struct why_choice *out)
{
    char within[DURATION_SHOWN + 32] = "when its lease ends";
    bool known = all->holder.takeover_in_ms >= 0;
    if (all->holder.broken || all->liveness == WHY_GONE) /* nobody is there to be asked */
        return 0;
    (void)add_choice(context, out, "break", "break", view->key, " --reason 'TEXT'");
    if (known) {
        char shown[DURATION_SHOWN];
        (void)snprintf(within, sizeof within, "in %s",
                       duration_show(all->holder.takeover_in_ms, shown));
    }
    if (all->liveness == WHY_NO_PROCESS)
        (void)snprintf(out->risk, sizeof out->risk,
                       "Refuse further renewals: the key is free %s. The work is not stopped, "
                       "and may still run then.",
                       within);
    else
        (void)snprintf(out->risk, sizeof out->risk,
                       "Ask the holder to stop: it cannot renew any more, and the key is free when "
                       "it confirms, %s%s%s. A command of run is stopped before it is finished; "
                       "other holders must stop by themselves.",
                       known ? "" : "or ", within, known ? " at the latest" : "");
    add_all_holders(view, out);
    return 1;
}

static size_t add_break_now(const struct context *context, const struct lh_view *view,
                            const struct why_holder *all, struct why_choice *out)
{
    (void)add_choice(context, out, "break-now", "break", view->key, " --now --reason 'TEXT'");
    set_risk(out, all->liveness == WHY_GONE
                      ? "Free the key at once. The holder's process is gone, but processes that it "
                        "started may still work; only a check of tokens refuses their writes."
                      : "Free the key at once, whatever the holder does. It may still work: two "
                        "workers run at the same time, and only a check of tokens refuses the "
                        "writes of the old one.");
    add_all_holders(view, out);
    return 1;
}

/* Only a process can be stopped, and only a lease without one is released for its holder. */
static size_t held_choices(const struct context *context, const struct lh_view *view,
                           const struct why_holder *all, struct why_choice *out)
{
    size_t count =
        all->stalled ? add_wait_for_stalled(context, view, out) : add_wait(context, view, out);
    count += add_continue(all, &out[count]);
    count += why_add_release(context, view, all, &out[count]);
    count += why_add_break(context, view, all, &out[count]);
    return count + add_break_now(context, view, all, &out[count]);
}

/* A value in Redis cannot be broken; only its program, or an operator with Redis's tools, may. */
static size_t add_stop(const struct context *context, const struct lh_view *view,
                       struct why_choice *out)
{
    char name[LH_NAME_SIZE];
    struct text risk;
    if (lh_key_name(context->url, view->key, name, sizeof name, NULL) != LH_OK)
        (void)snprintf(name, sizeof name, "%s", view->key);
    text_clean(name, strlen(name));
    out->name = "stop";
    out->command[0] = '\0';
    text_init(&risk, out->risk, sizeof out->risk);
    text_add(&risk, "Stop that program, or delete its value ");
    text_add_brief(&risk, name, WHY_LINE / 2);
    text_add(&risk, " in Redis: release and break are refused. If it still works then, two workers "
                    "run at the same time, and it has no token that could be checked.");
    return 1;
}

/* Another program has no token to release by, and cannot be asked to stop. */
static size_t foreign_choices(const struct context *context, const struct lh_view *view,
                              struct why_choice *out)
{
    size_t count = add_wait(context, view, out);
    set_risk(out, "Wait, and see it change. No risk: the work goes on.");
    if (strncmp(context->url, "redis", strlen("redis")) == 0)
        return count + add_stop(context, view, &out[count]);
    (void)add_choice(context, &out[count], "break-now", "break", view->key,
                     " --now --reason 'TEXT'");
    set_risk(&out[count], "Stop that program first; then free the key at once. The program is not "
                          "notified: if it still works, two workers run at the same time, and it "
                          "has no token that could be checked.");
    return count + 1;
}

/* ---- other states ---- */

static size_t cooling_choices(const struct context *context, const struct lh_view *view,
                              struct why_choice *out)
{
    size_t count = add_wait(context, view, out);
    set_risk(out, view->kind == LH_ONCE
                      ? "Leave it: later calls get the stored result. No risk."
                      : "Wait until it is free again. No risk: the work was done recently.");
    (void)add_choice(context, &out[count], "clear", "clear", view->key, "");
    set_risk(&out[count], view->kind == LH_ONCE
                              ? "Forget the result: the next call runs the command again, although "
                                "it was done."
                              : "End the cooldown: the next caller does the work again at once, "
                                "which the cooldown is there to prevent.");
    return count + 1;
}

static size_t delayed_choices(const struct context *context, const struct lh_view *view,
                              struct why_choice *out)
{
    size_t count = add_wait(context, view, out);
    set_risk(out, "Wait until the lock-delay is over. No risk.");
    (void)add_choice(context, &out[count], "break-now", "break", view->key,
                     " --now --reason 'TEXT'");
    set_risk(&out[count],
             "End the lock-delay: late effects of the crashed holder can then meet the "
             "work of the next one; only a check of tokens refuses them.");
    return count + 1;
}

static size_t watermark_choices(const struct context *context, const struct lh_view *view,
                                struct why_choice *out)
{
    static const char prefix[] = "watermark:";
    const char *name = view->key;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    (void)add_choice(context, out, "set", "watermark set", name, " --to VALUE --reason 'TEXT'");
    set_risk(out, "Move it by hand. Forward: everything in between is never handled. Backward: it "
                  "is handled again.");
    return 1;
}

size_t why_find_choices(const struct context *context, const struct lh_view *view,
                        const struct why_holder *all, struct why_choice out[WHY_CHOICES])
{
    if (view->kind == LH_WATERMARK)
        return watermark_choices(context, view, out);
    if (all != NULL && all->holder.foreign)
        return foreign_choices(context, view, out);
    if (all != NULL)
        return held_choices(context, view, all, out);
    switch (view->state) {
    case LH_COOLING_DOWN:
        return cooling_choices(context, view, out);
    case LH_DELAYED:
        return delayed_choices(context, view, out);
    case LH_OFFERED:
        return add_wait(context, view, out);
    default: /* free */
        return 0;
    }
}
