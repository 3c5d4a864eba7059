/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of stories with ids and watermarks; see verbs.c. */
#include "story.h"

#include <stdlib.h>
#include <string.h>

/* The value of " name=", empty if absent. */
static const char *word(const char *line, const char *name, char out[WORD_MAX])
{
    char pattern[32];
    (void)snprintf(pattern, sizeof pattern, " %s=", name);
    const char *at = strstr(line, pattern);
    at = at != NULL ? at + strlen(pattern) : "";
    (void)snprintf(out, WORD_MAX, "%.*s", (int)strcspn(at, " "), at);
    return out[0] != '\0' ? out : NULL;
}

void story_set_args(struct story *story, struct actor *actor, const char *line)
{
    char keep[WORD_MAX];
    struct story_args *story_args = &story->args[actor->index];
    struct request *request = &actor->options.request;
    if (strstr(line, " " ONCE_PREFIX) != NULL && strstr(line, " asks ") == NULL)
        request->kind = KIND_ONCE;
    request->payload = word(line, "payload", story_args->payload);
    story_args->completion =
        (struct completion){.result = word(line, "result", story_args->result),
                            .watermark = word(line, "watermark", story_args->watermark),
                            .until = word(line, "until", story_args->until)};
    request->completion = &story_args->completion;
    request->value = word(line, "to", story_args->value);
    (void)word(line, "from", story_args->expected);
    request->expected = story_args->expected;
    if (word(line, "keep", keep) != NULL)
        actor->options.cooldown_ms = strtoll(keep, NULL, 10);
}
