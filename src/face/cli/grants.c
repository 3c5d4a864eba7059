/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the tokens of a grant, for acquire and hold. A token that nobody reads is an error. */
#include "face/cli/cli.h"

#include <signal.h>
#include <stdio.h>

/* Collects the granted keys as lines of JSON. */
struct grant_output {
    const struct context *context;
    struct text *text;
};

static bool output_grant(void *user, const struct lh_view *view)
{
    const struct grant_output *grant = user;
    view_to_json(grant->context, view, "ok", /* past= */ false, grant->text);
    text_add(grant->text, "\n");
    return false;
}

int output_grants(struct context *context, const struct lh_lease *lease)
{
    static char lines[LH_KEYS_MAX * LINE_SIZE];
    struct text text;
    struct grant_output grant = {context, &text};
    struct lh_report report = LH_REPORT_INIT;
    /* A reader that is gone must be an error, which gives the keys back, and not kill us. */
    (void)signal(SIGPIPE, SIG_IGN);
    bool json = context->settings.json || context->settings.status_file != NULL;
    text_init(&text, lines, sizeof lines);
    for (size_t i = 0; json && lh_key_at(lease, i) != NULL; i++) {
        const char *key = lh_key_at(lease, i);
        if (lh_status_details(context->client, key, output_grant, &grant, &report) != LH_OK)
            return output_report(context, key, &report);
    }
    int status = write_status_file(context, lines);
    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; !context->settings.json && lh_key_at(lease, i) != NULL; i++)
        printf("%llu\n", (unsigned long long)lh_token_at(lease, i));
    if (context->settings.json)
        (void)fputs(lines, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return output_error(context, LH_FAILED, "the token could not be written; nothing is held");
    return EXIT_DONE;
}
