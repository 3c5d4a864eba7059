/* SPDX-License-Identifier: Apache-2.0 */
/* The words of stories about ids and watermarks; see verbs.c. */
#include "story.h"

#include <stdlib.h>
#include <string.h>

/* The word behind " name=", empty when there is none. */
static const char *word(const char *line, const char *name, char out[WORD_MAX])
{
    char pattern[32];
    (void)snprintf(pattern, sizeof pattern, " %s=", name);
    const char *at = strstr(line, pattern);
    at = at != NULL ? at + strlen(pattern) : "";
    (void)snprintf(out, WORD_MAX, "%.*s", (int)strcspn(at, " "), at);
    return out[0] != '\0' ? out : NULL;
}

void story_say(struct story *story, struct actor *actor, const char *line)
{
    char keep[WORD_MAX];
    struct saying *saying = &story->sayings[actor->index];
    struct request *request = &actor->options.request;
    if (strstr(line, " " ONCE_PREFIX) != NULL && strstr(line, " asks ") == NULL)
        request->kind = KIND_ONCE;
    request->payload = word(line, "payload", saying->payload);
    saying->deed = (struct deed){.result = word(line, "result", saying->result),
                                 .watermark = word(line, "watermark", saying->watermark),
                                 .until = word(line, "until", saying->until)};
    request->deed = &saying->deed;
    request->value = word(line, "to", saying->value);
    (void)word(line, "from", saying->expected);
    request->expected = saying->expected;
    if (word(line, "keep", keep) != NULL)
        actor->options.cooldown_ms = strtoll(keep, NULL, 10);
}
