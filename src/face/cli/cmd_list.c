/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold list: prints the keys that are held, cooling or waited for, and the watermarks. A
 * terminal gets a sorted table. Otherwise each key is one line, in the format that scripts read, as
 * soon as the store returns it, unless --sort is given.
 */
#include "face/cli/cli.h"

#include "face/cli/columns.h"
#include "face/cli/text_table.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS_MAX = TABLE_ROWS_MAX, STATE_MOST = 16 };
enum list_sort { SORT_NONE, SORT_KEY, SORT_STATE, SORT_HOLDER, SORT_FOR, SORT_ENDS, SORT_WAITERS };
enum {
    COLUMN_KEY,
    COLUMN_STATE,
    COLUMN_HOLDER,
    COLUMN_FOR,
    COLUMN_ENDS,
    COLUMN_WAITERS,
    COLUMNS_COUNT
};

static const struct text_table_column columns[TABLE_COLUMNS] = {
    [COLUMN_KEY] = {.header = "KEY"},
    [COLUMN_STATE] = {.header = "STATE", .colored = true, .most = STATE_MOST},
    [COLUMN_HOLDER] = {.header = "HOLDER"},
    [COLUMN_FOR] = {.header = "FOR", .right = true},
    [COLUMN_ENDS] = {.header = "ENDS-IN", .right = true},
    [COLUMN_WAITERS] = {.header = "WAITERS", .right = true},
};

/* A key to be sorted. */
struct list_row {
    char *key, *holder;
    char *state, *text; /* the cells STATE and HOLDER of the table … */
    char *line;         /* … or the whole line */
    const char *name;   /* of the state */
    const char *color;
    int64_t since_ms, ends_in_ms;
    uint32_t waiters;
};

struct key_listing {
    struct context *context;
    bool table;
    enum list_sort sort;
    struct list_row *rows;
    size_t count, room;
    bool failed; /* out of memory, or too many keys */
};

/* ---- options ---- */

static const char *const sort_names[] = {[SORT_NONE] = "none",       [SORT_KEY] = "key",
                                         [SORT_STATE] = "state",     [SORT_HOLDER] = "holder",
                                         [SORT_FOR] = "for",         [SORT_ENDS] = "ends-in",
                                         [SORT_WAITERS] = "waiters", NULL};
static const char *const state_choices[] = {
    "any",     "held", "offered", "cooling",   "delayed", "free", "unreadable",
    "running", "done", "failed",  "watermark", "broken",  NULL};

static const struct option option_names = {.name = "names",
                                           .kind = VALUE_FLAG,
                                           .at = offsetof(struct settings, names),
                                           .flag_only = true,
                                           .help = "print only the keys"};
static const struct option option_sort = {
    .name = "sort",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, sort),
    .value = "COLUMN",
    .choices = sort_names,
    .flag_only = true,
    .help = "order by key, state, holder, for (longest first), ends-in (soonest first) or waiters "
            "(most first); by default a table is ordered by key, other output is not ordered"};
static const struct option option_state = {
    .name = "state",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, state),
    .value = "STATE",
    .choices = state_choices,
    .flag_only = true,
    .help = "only keys in this state: held, offered, cooling, delayed, free (and waited for), "
            "unreadable, broken; of ids running, done, failed; or watermark"};

/* ---- rows ---- */

static const char *row_color(const struct lh_view *view)
{
    if (view->broken || view->state == LH_UNREADABLE ||
        (view->state == LH_COOLING_DOWN && view->status != 0))
        return "\033[31m"; /* red */
    if (view->state == LH_HELD)
        return "\033[32m"; /* green */
    if (view->state == LH_OFFERED || view->state == LH_DELAYED)
        return "\033[33m"; /* yellow */
    return view->state == LH_COOLING_DOWN ? "\033[36m" /* cyan */ : "";
}

/* The state, the occupied slots of a semaphore, or the value of a watermark. */
static char *state_cell(const struct lh_view *view)
{
    char cell[TABLE_CELL_SIZE];
    struct text text;
    text_init(&text, cell, sizeof cell);
    if (view->kind == LH_WATERMARK) {
        text_add(&text, "at ");
        text_add(&text, view->result != NULL ? view->result : "?");
        return strdup(cell);
    }
    text_add(&text, view->broken ? "broken" : view_state_name(view));
    if (view->state == LH_HELD && view->limit > 0) {
        text_add(&text, " ");
        text_add_u64(&text, view->holders);
        text_add(&text, "/");
        text_add_u64(&text, view->limit);
    }
    return strdup(cell);
}

/* The first holder and the number of others, or the cause of an unreadable record. */
static char *holder_cell(const struct lh_view *view)
{
    char cell[TABLE_CELL_SIZE];
    struct text text;
    bool unreadable = view->state == LH_UNREADABLE && view->text != NULL;
    const char *name = unreadable ? view->text : view->holder;
    text_init(&text, cell, sizeof cell);
    text_add(&text, name[0] != '\0' ? name : "-");
    if (view->holders > 1) {
        text_add(&text, " +");
        text_add_u64(&text, view->holders - 1);
    }
    return strdup(cell);
}

static char *whole_line(const struct context *context, const struct lh_view *view)
{
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.names)
        text_add(&text, view->key);
    else if (context->settings.json)
        view_to_json(context, view, NULL, /* past= */ false, &text);
    else
        view_to_line(view, &text);
    return strdup(line);
}

static struct list_row *list_add_row(struct key_listing *list)
{
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 64;
        struct list_row *rows = room <= ROWS_MAX ? realloc(list->rows, room * sizeof *rows) : NULL;
        if (rows == NULL)
            return NULL;
        list->rows = rows;
        list->room = room;
    }
    return &list->rows[list->count++];
}

static bool list_keep(struct key_listing *list, const struct lh_view *view)
{
    struct list_row *row = list_add_row(list);
    if (row == NULL)
        return false;
    *row = (struct list_row){.key = strdup(view->key),
                             .holder = strdup(view->holder),
                             .name = view->broken ? "broken" : view_state_name(view),
                             .color = row_color(view),
                             .since_ms = view->since_ms,
                             .ends_in_ms = view->ends_in_ms,
                             .waiters = view->waiters};
    if (list->table) {
        row->state = state_cell(view);
        row->text = holder_cell(view);
    } else {
        row->line = whole_line(list->context, view);
    }
    return row->key != NULL && row->holder != NULL &&
           (list->table ? row->state != NULL && row->text != NULL : row->line != NULL);
}

static void list_done(struct key_listing *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->rows[i].key);
        free(list->rows[i].holder);
        free(list->rows[i].state);
        free(list->rows[i].text);
        free(list->rows[i].line);
    }
    free(list->rows);
}

/* ---- order ---- */

static enum list_sort sort_by; /* qsort() passes no argument */

static int list_compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Unknown ends come last. */
static int compare_ends(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? list_compare_numbers(b, a) : list_compare_numbers(a, b);
}

static int compare_rows(const void *left, const void *right)
{
    const struct list_row *a = left, *b = right;
    int order = 0;
    if (sort_by == SORT_STATE)
        order = strcmp(a->name, b->name);
    else if (sort_by == SORT_HOLDER)
        order = strcmp(a->holder, b->holder);
    else if (sort_by == SORT_FOR)
        order = list_compare_numbers(b->since_ms, a->since_ms);
    else if (sort_by == SORT_ENDS)
        order = compare_ends(a->ends_in_ms, b->ends_in_ms);
    else if (sort_by == SORT_WAITERS)
        order = list_compare_numbers(b->waiters, a->waiters);
    return order != 0 ? order : strcmp(a->key, b->key);
}

/* ---- output ---- */

static bool add_table_row(struct text_table *table, const struct list_row *row)
{
    char since[DURATION_SHOWN] = "-", ends[DURATION_SHOWN] = "-", waiters[16];
    const char *const cells[COLUMNS_COUNT] = {row->key, row->state, row->text,
                                              since,    ends,       waiters};
    if (row->since_ms >= 0)
        (void)duration_show(row->since_ms, since);
    if (row->ends_in_ms >= 0)
        (void)duration_show(row->ends_in_ms, ends);
    (void)snprintf(waiters, sizeof waiters, "%u", (unsigned)row->waiters);
    return text_table_add(table, cells, row->color);
}

static void print_table(struct key_listing *list)
{
    struct text_table table = {.columns = columns, .shrinks = {COLUMN_KEY, COLUMN_HOLDER}};
    for (size_t i = 0; i < list->count && !list->failed; i++)
        list->failed = !add_table_row(&table, &list->rows[i]);
    if (!list->failed)
        text_table_print(&table, /* indent= */ 0, columns_of_terminal(STDOUT_FILENO),
                         columns_have_color(STDOUT_FILENO), stdout);
    text_table_done(&table);
}

static void list_print(struct key_listing *list)
{
    sort_by = list->sort;
    if (list->count > 0)
        qsort(list->rows, list->count, sizeof list->rows[0], compare_rows);
    if (list->table && list->count > 0)
        print_table(list);
    else if (list->table && !list->context->settings.quiet)
        (void)fprintf(stderr, "no key is held, cooling or waited for\n");
    for (size_t i = 0; !list->table && i < list->count && !ferror(stdout); i++) {
        struct text line = {.bytes = list->rows[i].line, .length = strlen(list->rows[i].line)};
        output_line(&line, stdout);
    }
}

/* ---- the command ---- */

static bool list_wants(const struct context *context, const struct lh_view *view)
{
    const char *wanted = state_choices[context->settings.state];
    if (view->state == LH_FREE && view->waiters == 0 && view->kind != LH_WATERMARK)
        return false; /* an expired lease without waiters */
    if (context->settings.state == 0 || strcmp(wanted, view_state_name(view)) == 0)
        return true;
    return (view->broken && strcmp(wanted, "broken") == 0) ||
           (view->state == LH_HELD && strcmp(wanted, "held") == 0) ||
           (view->state == LH_COOLING_DOWN && strcmp(wanted, "cooling") == 0);
}

static bool list_on_view(void *user, const struct lh_view *view)
{
    struct key_listing *list = user;
    if (!list_wants(list->context, view))
        return true;
    if (list->sort != SORT_NONE) {
        list->failed = !list_keep(list, view);
        return !list->failed;
    }
    if (list->context->settings.names)
        puts(view->key);
    else
        output_view(list->context, view);
    return !ferror(stdout);
}

static int cmd_list(struct context *context)
{
    const char *prefix = context->arg_count > 0 ? context->args[0] : "";
    const struct settings *settings = &context->settings;
    struct key_listing list = {.context = context, .sort = (enum list_sort)settings->sort};
    struct lh_report report = LH_REPORT_INIT;
    list.table = !settings->json && !settings->names && isatty(STDOUT_FILENO) == 1;
    if (list.table && list.sort == SORT_NONE)
        list.sort = SORT_KEY;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_list(context->client, prefix, list_on_view, &list, &report) != LH_OK)
        status = output_report(context, NULL, &report);
    else if (!list.failed)
        list_print(&list);
    if (list.failed)
        status = output_error(context, LH_FAILED,
                              "too many keys to sort, or out of memory; give a PREFIX, or print "
                              "them unsorted: leasehold list | cat");
    list_done(&list);
    return status;
}

static const struct option *const list_options[] = {&option_names, &option_sort, &option_state,
                                                    NULL};

const struct command command_list = {
    .name = "list",
    .args = "[PREFIX]",
    .summary = "list the keys that are held, cooling or waited for",
    .about =
        "Prints each key that begins with PREFIX and is held, cooling, delayed, offered or waited "
        "for, and each watermark. Ids of once are listed as running, done or failed. Free keys "
        "occupy no space in the store and are not listed. A record that cannot be read, because it "
        "is damaged or a newer version wrote it, is listed as unreadable, with the cause; "
        "leasehold status exits with 69 for its key.\n\n"
        "On a terminal this is a table, sorted by key, with colours unless NO_COLOR is set: FOR is "
        "the time in this state, ENDS-IN the time until the lease or the cooldown ends, and "
        "\"held 2/3\" a semaphore with two of three slots taken. In a narrow terminal the key is "
        "shortened in the middle. Otherwise each key is one line, as of leasehold status, in no "
        "particular order unless --sort is given.",
    .example = "  leasehold list production/\n"
               "  leasehold list --state held --sort for",
    .options = list_options,
    .max_args = 1,
    .run = cmd_list,
};
