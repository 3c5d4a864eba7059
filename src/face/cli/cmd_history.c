/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold history: prints the changes of a key that the store has kept. */
#include "face/cli/cli.h"

#include "face/cli/columns.h"

#include <stdio.h>
#include <unistd.h>

static bool output_history_view(void *user, const struct lh_view *view)
{
    const struct context *context = user;
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (context->settings.json) {
        view_to_json(context, view, NULL, /* past= */ true, &text);
    } else {
        char when[32];
        text_add(&text, format_written_time(view, when)[0] != '\0' ? when : "-");
        text_add(&text, " ");
        bool terminal = isatty(STDOUT_FILENO) == 1;
        size_t columns = terminal ? columns_of_terminal(STDOUT_FILENO) : SIZE_MAX;
        view_to_line_within(view, columns > text.length ? columns - text.length : 0, &text);
    }
    output_line(&text, stdout);
    return !ferror(stdout);
}

static int cmd_history(struct context *context)
{
    const char *key = context->args[0];
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_history(context->client, key, output_history_view, context, &report) != LH_OK)
        return output_report(context, key, &report);
    return EXIT_DONE;
}

const struct command command_history = {
    .name = "history",
    .args = "KEY",
    .summary = "show the kept changes of a key, newest first",
    .about = "Prints one line for each change of KEY that the store has kept, newest first: its "
             "time and the new state of the key. A store without a history refuses this (64).",
    .example = "  leasehold history production/deployment",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_history,
};
