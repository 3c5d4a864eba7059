/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold status: prints the state of keys: holder, since when, until when, and waiters. On a
 * terminal and with --verbose the line is followed by meta, every holder and every waiter; with
 * --verbose also by the record. As JSON holders and waiters are always there.
 */
#include "face/cli/cli.h"

#include "face/cli/columns.h"
#include "face/cli/text_table.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <unistd.h>

/* For 64 holders with meta, 256 waiters and the record, all with escapes. */
enum { STATUS_SIZE = 1024 * 1024, INDENT = 2, META_SIZE = 2048 };

static char status_buffer[STATUS_SIZE], record_buffer[LH_RECORD_SIZE];

/* ---- JSON ---- */

static void begin_item(struct text *out, bool first)
{
    text_add(out, first ? "" : ",");
    json_begin(out);
}

static void holders_to_json(const struct lh_view *view, struct text *out)
{
    struct lh_holder holder = LH_HOLDER_INIT;
    json_add_list(out, "held_by");
    for (size_t i = 0; lh_view_holder(view, i, &holder); i++) {
        begin_item(out, /* first= */ i == 0);
        json_add_string(out, "holder", holder.name);
        json_add_token(out, "token", holder.token);
        json_add_length(out, "held_for_ms", holder.since_ms);
        json_add_length(out, "renewed_ago_ms", holder.renewed_ago_ms);
        json_add_length(out, "expires_in_ms", holder.ends_in_ms);
        json_add_length(out, "ttl_ms", holder.ttl_ms);
        json_add_bool(out, "shared", holder.shared);
        json_add_bool(out, "broken", holder.broken);
        json_add_object(out, "meta");
        for (size_t j = 0; j < holder.meta_count; j++)
            json_add_string(out, holder.meta[j].name, holder.meta[j].value);
        json_end(out);
        json_end(out);
    }
    json_end_list(out);
}

void waiters_to_json(const struct lh_view *view, struct text *out)
{
    struct lh_waiter waiter = LH_WAITER_INIT;
    json_add_list(out, "queue");
    for (size_t i = 0; lh_view_waiter(view, i, &waiter); i++) {
        begin_item(out, /* first= */ i == 0);
        json_add_number(out, "position", waiter.position);
        json_add_string(out, "holder", waiter.name);
        json_add_number(out, "priority", waiter.priority);
        json_add_length(out, "waiting_for_ms", waiter.since_ms);
        json_add_bool(out, "shared", waiter.shared);
        json_add_bool(out, "offered", waiter.offered);
        json_end(out);
    }
    json_end_list(out);
}

static void status_to_json(const struct context *context, const struct lh_view *view)
{
    struct text out;
    text_init(&out, status_buffer, sizeof status_buffer);
    view_to_open_json(context, view, NULL, /* past= */ false, &out);
    holders_to_json(view, &out);
    waiters_to_json(view, &out);
    if (context->settings.verbose &&
        lh_view_record(view, record_buffer, sizeof record_buffer) > 0) {
        text_add(&out, ",\"record\":");
        text_add(&out, record_buffer);
    }
    json_end(&out);
    output_line(&out, stdout);
}

/* ---- text ---- */

static void meta_to_text(const struct lh_meta *meta, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        text_add(out, i > 0 ? ", " : "");
        text_add(out, meta[i].name);
        text_add(out, "=");
        text_add(out, meta[i].value);
    }
}

static void status_print_table(struct text_table *table)
{
    if (table->count > 0)
        text_table_print(table, INDENT, columns_of_terminal(STDOUT_FILENO),
                         columns_have_color(STDOUT_FILENO), stdout);
    text_table_done(table);
}

/* Memory that runs out shortens the table; the first line has the number of holders and waiters. */
static void print_holders(const struct lh_view *view)
{
    static const struct text_table_column columns[TABLE_COLUMNS] = {
        {.header = "HOLDER"},
        {.header = "FOR", .right = true},
        {.header = "ENDS-IN", .right = true},
        {.header = "TOKEN", .right = true},
        {.header = "MODE"},
        {.header = "META"},
    };
    struct text_table table = {.columns = columns, .shrinks = {5, 0}};
    struct lh_holder holder = LH_HOLDER_INIT;
    bool more = true;
    for (size_t i = 0; more && lh_view_holder(view, i, &holder); i++) {
        char since[DURATION_SHOWN] = "-", ends[DURATION_SHOWN] = "-", token[24], meta[META_SIZE];
        const char *mode = holder.broken     ? "broken"
                           : holder.shared   ? "shared"
                           : view->limit > 0 ? "slot"
                                             : "exclusive";
        const char *const cells[] = {holder.name, since, ends, token, mode, meta};
        struct text text;
        text_init(&text, meta, sizeof meta);
        meta_to_text(holder.meta, holder.meta_count, &text);
        if (holder.since_ms >= 0)
            (void)duration_show(holder.since_ms, since);
        if (holder.ends_in_ms >= 0)
            (void)duration_show(holder.ends_in_ms, ends);
        (void)snprintf(token, sizeof token, "%llu", (unsigned long long)holder.token);
        more = text_table_add(&table, cells, "");
    }
    status_print_table(&table);
}

static void print_waiters(const struct lh_view *view)
{
    static const struct text_table_column columns[TABLE_COLUMNS] = {
        {.header = "POSITION", .right = true},
        {.header = "WAITER"},
        {.header = "PRIORITY", .right = true},
        {.header = "SINCE", .right = true},
        {.header = "MODE"},
    };
    struct text_table table = {.columns = columns, .shrinks = {1, 1}};
    struct lh_waiter waiter = LH_WAITER_INIT;
    bool more = true;
    for (size_t i = 0; more && lh_view_waiter(view, i, &waiter); i++) {
        char position[16], priority[16], since[DURATION_SHOWN + 8] = "-";
        const char *mode = waiter.offered    ? "offered"
                           : waiter.shared   ? "shared"
                           : view->limit > 0 ? "slot"
                                             : "exclusive";
        const char *const cells[] = {position, waiter.name, priority, since, mode};
        (void)snprintf(position, sizeof position, "%u", (unsigned)waiter.position);
        (void)snprintf(priority, sizeof priority, "%d", (int)waiter.priority);
        if (waiter.since_ms >= 0) {
            char duration[DURATION_SHOWN];
            (void)snprintf(since, sizeof since, "%s ago", duration_show(waiter.since_ms, duration));
        }
        more = text_table_add(&table, cells, "");
    }
    status_print_table(&table);
}

static void status_details(const struct context *context, const struct lh_view *view)
{
    struct text out;
    text_init(&out, status_buffer, sizeof status_buffer);
    if (view->holders > 1 || view->limit > 0 || view->shared) {
        print_holders(view);
    } else if (view->meta_count > 0) {
        text_add(&out, "  meta: ");
        meta_to_text(view->meta, view->meta_count, &out);
        output_line(&out, stdout);
    }
    if (view->waiters > 0)
        print_waiters(view);
    text_clear(&out);
    if (context->settings.verbose &&
        lh_view_record(view, record_buffer, sizeof record_buffer) > 0) {
        text_add(&out, "  record: ");
        text_add(&out, record_buffer);
        output_line(&out, stdout);
    }
}

static void status_to_text(const struct context *context, const struct lh_view *view)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;
    struct text out;
    text_init(&out, status_buffer, sizeof status_buffer);
    view_to_line_within(view, terminal ? columns_of_terminal(STDOUT_FILENO) : SIZE_MAX, &out);
    output_line(&out, stdout);
    if ((terminal && !context->settings.quiet) || context->settings.verbose)
        status_details(context, view);
}

/* ---- the command ---- */

static bool output_status_view(void *user, const struct lh_view *view)
{
    const struct context *context = user;
    if (context->settings.json)
        status_to_json(context, view);
    else
        status_to_text(context, view);
    return false;
}

static int cmd_status(struct context *context)
{
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    for (size_t i = 0; i < context->arg_count && status == EXIT_DONE; i++) {
        const char *key = context->args[i];
        if (lh_status_details(context->client, key, output_status_view, context, &report) != LH_OK)
            status = output_report(context, key, &report);
    }
    return status;
}

const struct command command_status = {
    .name = "status",
    .args = "KEY...",
    .summary = "print who holds a key, since when and until when",
    .about =
        "Prints the state of each KEY: free, held, cooling after a release, delayed after a crash "
        "of its holder, or offered to the next waiter. An id is named once:ID and is running, done "
        "or failed; a watermark is named watermark:NAME. A free key is not an error: status 0. The "
        "state can change at any time: to skip work that is running or was just done, use "
        "`run -n`, which then exits with 75 or 73.\n\n"
        "On a terminal, and with --verbose, further lines show the metadata, every holder of a "
        "semaphore or shared lock, and every waiter with its position, its priority and the time "
        "since it entered the queue. --verbose also prints the record as the store keeps it. With "
        "--json the lists are held_by and queue.",
    .example = "  leasehold status nightly\n"
               "  leasehold status nightly --json | jq -r .holder",
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_status,
};
