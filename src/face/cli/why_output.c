/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what `leasehold why` has found, as text that fits the terminal, or as one JSON object with
 * the same facts. Commands are printed whole on a line of their own, so that they can be copied.
 */
#include "face/cli/columns.h"
#include "face/cli/why.h"

#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LABEL = 10, PID = 8 };

/* ---- lines ---- */

/* "label     words…", wrapped below the first word. */
static void put_words(const char *label, size_t indent, const char *words)
{
    const size_t width = columns_of_terminal(STDOUT_FILENO);
    size_t at = indent;
    printf("%-*s", *words != '\0' ? (int)indent : 0, label);
    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        size_t columns = columns_of(words) - columns_of(words + length);
        if (at > indent && at + 1 + columns > width) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, words);
        at += columns;
        words += length;
    }
    putchar('\n');
}

/* Text from outside is cleaned first. */
static void put_field(const char *label, struct text *value)
{
    text_clean(value->bytes, value->length);
    put_words(label, LABEL, value->bytes);
}

static void add_time(struct text *out, int64_t ago_ms)
{
    char when[32];
    if (format_time_ago(ago_ms, when)[0] == '\0') {
        text_add(out, "unknown");
        return;
    }
    text_add_bytes(out, when, strcspn(when, "."));
    text_add(out, "Z");
    output_add_duration(out, ", ", ago_ms, " ago");
}

/* ---- the holder ---- */

static void put_processes(const struct why_holder *holder)
{
    char line[WHY_LINE];
    struct text text;
    if (holder->liveness == WHY_NO_PROCESS)
        return;
    text_init(&text, line, sizeof line);
    if (holder->host[0] == '\0')
        text_add(&text, "unknown: the holder's name contains no host and process");
    else if (holder->process_count == 0)
        text_add(&text, "on this host, ");
    else
        text_add(&text, holder->is_here ? "on this host, " : "on the host ");
    text_add(&text, holder->host);
    put_field("process", &text);
    for (size_t i = 0; i < holder->process_count; i++) {
        const struct why_process *process = &holder->processes[i];
        char label[32];
        (void)snprintf(label, sizeof label, "%*s%d", LABEL, "", process->pid);
        text_init(&text, line, sizeof line);
        text_add(&text, process->state == 'T' ? "(stopped) " : "");
        bool same = i > 0 && strcmp(process->command, process[-1].command) == 0;
        text_add(&text, same && process->command[0] != '\0' ? "the same" : process->command);
        text_clean(line, text.length);
        put_words(label, LABEL + PID, line);
    }
}

/* Only the value in the store is known, not the program's plans. */
static void put_foreign_end(const struct lh_holder *holder)
{
    char line[WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (holder->ends_in_ms < 0)
        output_add_duration(&text, "unknown; after ", holder->ttl_ms, " without a renewal");
    else if (holder->ttl_ms >= WHY_FOREIGN_END)
        output_add_duration(&text, "in ", WHY_FOREIGN_END, " or later, or never");
    else
        output_add_duration(&text, "in ", holder->ends_in_ms, ", unless the program extends it");
    put_field("ends", &text);
}

static const char *explain_renewal(const struct why_holder *found)
{
    static const char *const renewals[] = {
        [WHY_UNKNOWN] = ", unless the holder renews it, as it does while it lives",
        [WHY_ALIVE] = ", unless the holder renews it, as it does while it lives",
        [WHY_GONE] = ": its holder does not renew it any more",
        [WHY_NO_PROCESS] = ", unless it is renewed by its token",
    };
    return found->stalled ? ": its holder is stopped, and renews it only if it is continued before"
                          : renewals[found->liveness];
}

static void why_add_asked(const struct lh_view *view, struct text *out)
{
    text_add(out, ": an operator asked the holder to stop");
    if (view->reason != NULL && view->reason[0] != '\0') {
        text_add(out, ": ");
        text_add(out, view->reason);
    }
}

static void put_heartbeat_end(const struct lh_view *view, const struct lh_holder *holder)
{
    char line[WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    output_add_duration(&text, "when no heartbeat arrives for its stale time (", holder->ttl_ms,
                        ")");
    if (holder->broken) {
        text_add(&text, " at the latest");
        why_add_asked(view, &text);
    }
    put_field("ends", &text);
}

static void put_end(const struct lh_view *view, const struct why_holder *found)
{
    const struct lh_holder *holder = &found->holder;
    char line[WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (holder->by_heartbeat) {
        put_heartbeat_end(view, holder);
        return;
    }
    if (holder->ends_in_ms < 0)
        text_add(&text, "not known from here");
    else if (holder->ends_in_ms == 0)
        text_add(&text, "the lease has ended");
    else
        output_add_duration(&text, "in ", holder->ends_in_ms, "");
    if (holder->takeover_in_ms > holder->ends_in_ms)
        output_add_duration(&text, "; free for others in ", holder->takeover_in_ms, "");
    if (holder->broken) {
        text_add(&text, " at the latest");
        why_add_asked(view, &text);
    } else if (holder->ends_in_ms > 0) {
        text_add(&text, explain_renewal(found));
    }
    output_add_duration(&text, " (TTL ", holder->ttl_ms, "");
    output_add_duration(&text, ", renewed ", holder->renewed_ago_ms, " ago");
    text_add(&text, holder->ttl_ms >= 0 ? ")" : "");
    put_field("ends", &text);
}

static void put_meta(const struct lh_holder *holder)
{
    char line[2 * WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    for (size_t i = 0; i < holder->meta_count; i++) {
        text_add(&text, i > 0 ? " " : "");
        text_add(&text, holder->meta[i].name);
        text_add(&text, "=");
        text_add(&text, holder->meta[i].value);
    }
    if (holder->meta_count > 0)
        put_field("meta", &text);
}

static void put_foreign(const struct why_holder *found)
{
    char line[WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    text_add(&text, "a program other than leasehold, which wrote ");
    text_add(&text, found->holder.name);
    put_field("holder", &text);
    put_words("since", LABEL, "unknown; token unknown");
    put_words("alive", LABEL, found->reason);
    put_foreign_end(&found->holder);
}

static void put_holder(const struct lh_view *view, const struct why_holder *found)
{
    char line[WHY_LINE];
    struct text text;
    text_init(&text, line, sizeof line);
    text_add(&text, found->holder.name);
    text_add(&text, found->holder.shared ? " (shared)" : "");
    put_field("holder", &text);
    text_init(&text, line, sizeof line);
    add_time(&text, found->holder.since_ms);
    text_add(&text, "; token ");
    text_add_u64(&text, found->holder.token);
    put_field("since", &text);
    put_processes(found);
    put_words("alive", LABEL, found->reason);
    put_end(view, found);
    put_meta(&found->holder);
}

/* ---- the rest ---- */

static void put_headline(const struct lh_view *view, bool foreign)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (foreign) { /* its times and token are not known */
        text_add(&text, "held: ");
        text_add(&text, view->key);
        text_add(&text, " by a program other than leasehold");
    } else {
        view_to_line(view, &text);
    }
    text_clean(line, text.length);
    put_words("", 0, line);
    putchar('\n');
}

static void put_waiters(const struct lh_view *view)
{
    struct lh_waiter waiter = LH_WAITER_INIT;
    size_t index = 0;
    for (; lh_view_waiter(view, index, &waiter); index++) {
        char line[WHY_LINE];
        struct text text;
        text_init(&text, line, sizeof line);
        text_add_u64(&text, waiter.position);
        text_add(&text, ". ");
        text_add(&text, waiter.name);
        text_add(&text, waiter.shared ? ", shared" : "");
        if (waiter.priority != 0) {
            text_add(&text, ", priority ");
            text_add_i64(&text, waiter.priority);
        }
        output_add_duration(&text, ", for ", waiter.since_ms, "");
        text_add(&text, waiter.offered ? ", whose turn it is" : "");
        put_field(index == 0 ? "waiting" : "", &text);
    }
    if (index == 0)
        put_words("waiting", LABEL, "nobody");
}

static void put_changes(const struct why *why)
{
    for (size_t i = 0; i < why->change_count && i < WHY_CHANGES; i++) {
        const struct why_change *change = &why->changes[i];
        char line[2 * WHY_LINE];
        struct text text;
        text_init(&text, line, sizeof line);
        add_time(&text, change->ago_ms);
        text_add(&text, ": ");
        text_add(&text, change->text);
        put_field(i == 0 ? "changed" : "", &text);
    }
    if (!why->has_history)
        put_words("changed", LABEL, "unknown: this store keeps no history");
    else if (why->change_count == 0)
        put_words("changed", LABEL, "nothing that the store has kept");
}

static void why_put_choices(const struct why_choice *choices, size_t count)
{
    if (count == 0) {
        puts("\nNothing blocks the key: the next caller gets it.");
        return;
    }
    puts("\nwhat can be done:");
    for (size_t i = 0; i < count; i++) {
        putchar('\n');
        if (choices[i].command[0] != '\0')
            printf("    %s\n", choices[i].command);
        put_words("", LABEL, choices[i].risk);
    }
}

void why_to_text(const struct why *why, const struct lh_view *view)
{
    static struct why_choice choices[WHY_CHOICES];
    static struct why_holder all, found;
    bool held = why_find_holder(view, 0, &all);
    bool foreign = held && all.holder.foreign;
    put_headline(view, foreign);
    if (foreign)
        put_foreign(&all);
    else if (held)
        put_holder(view, &all);
    for (size_t i = 1; held && !foreign && why_find_holder(view, i, &found); i++) {
        put_holder(view, &found);
        why_merge_holder(&all, &found);
    }
    if (view->kind != LH_WATERMARK)
        put_waiters(view);
    put_changes(why);
    why_put_choices(choices, why_find_choices(why->context, view, held ? &all : NULL, choices));
}

/* ---- JSON ---- */

static void json_holder(struct text *out, const struct why_holder *found)
{
    const struct lh_holder *holder = &found->holder;
    json_item_object(out);
    json_add_string(out, "holder", holder->name);
    if (holder->foreign)
        json_add_null(out, "token");
    else
        json_add_token(out, "token", holder->token);
    json_add_length(out, "held_for_ms", holder->foreign ? -1 : holder->since_ms);
    json_add_length(out, "renewed_ago_ms", holder->renewed_ago_ms);
    json_add_length(out, "expires_in_ms", holder->ends_in_ms);
    json_add_length(out, "ttl_ms", holder->ttl_ms);
    json_add_bool(out, "shared", holder->shared);
    json_add_bool(out, "broken", holder->broken);
    json_add_bool(out, "foreign", holder->foreign);
    json_add_string(out, "host", found->host[0] != '\0' ? found->host : NULL);
    json_add_string(out, "liveness", why_liveness_name(found->liveness));
    json_add_string(out, "liveness_text", found->reason);
    json_add_list(out, "processes");
    for (size_t i = 0; i < found->process_count; i++) {
        const struct why_process *process = &found->processes[i];
        json_item_object(out);
        json_add_number(out, "pid", process->pid);
        json_add_string(out, "command", process->command[0] != '\0' ? process->command : NULL);
        json_add_bool(out, "stopped", process->state == 'T');
        json_end(out);
    }
    json_end_list(out);
    json_end(out);
}

static void json_changes(struct text *out, const struct why *why)
{
    if (!why->has_history) {
        json_add_null(out, "changes");
        return;
    }
    json_add_list(out, "changes");
    for (size_t i = 0; i < why->change_count && i < WHY_CHANGES; i++) {
        const struct why_change *change = &why->changes[i];
        json_item_object(out);
        json_add_string(out, "written_at", change->at[0] != '\0' ? change->at : NULL);
        json_add_string(out, "text", change->text);
        json_end(out);
    }
    json_end_list(out);
}

static void json_choices(struct text *out, const struct why_choice *choices, size_t count)
{
    json_add_list(out, "choices");
    for (size_t i = 0; i < count; i++) {
        json_item_object(out);
        json_add_string(out, "choice", choices[i].name);
        json_add_string(out, "command", choices[i].command[0] != '\0' ? choices[i].command : NULL);
        json_add_string(out, "risk", choices[i].risk);
        json_end(out);
    }
    json_end_list(out);
}

void why_to_json(const struct why *why, const struct lh_view *view)
{
    enum { JSON_SIZE = 4 * 65536 + WHY_CHOICES * LINE_SIZE };
    static char line[JSON_SIZE];
    static struct why_choice choices[WHY_CHOICES];
    static struct why_holder all, found;
    struct text out;
    bool held = why_find_holder(view, 0, &all);
    text_init(&out, line, sizeof line);
    view_to_json(why->context, view, NULL, /* past= */ false, &out);
    json_reopen(&out);
    json_add_list(&out, "held_by");
    for (size_t i = 0; why_find_holder(view, i, &found); i++) {
        json_holder(&out, &found);
        if (i > 0)
            why_merge_holder(&all, &found);
    }
    json_end_list(&out);
    waiters_to_json(view, &out);
    json_changes(&out, why);
    json_choices(&out, choices, why_find_choices(why->context, view, held ? &all : NULL, choices));
    json_end(&out);
    output_line(&out, stdout);
}
