/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. */
#include "runtime/options.h"

#include <string.h>

static size_t size_of_words(const char *words)
{
    return words != NULL ? strlen(words) + 1 : 0;
}

/* Only the part that is in use. */
static size_t size_of_meta(const struct meta *meta)
{
    return meta != NULL ? offsetof(struct meta, text) + meta->used : 0;
}

size_t options_size(const struct lease_options *options)
{
    const struct request *request = &options->request;
    const struct deed *deed = request->deed;
    size_t size = size_of_meta(request->meta) + size_of_words(request->holder) +
                  size_of_words(request->reason) + size_of_words(request->request) +
                  size_of_words(request->payload) + size_of_words(request->value) +
                  size_of_words(request->expected);
    if (deed != NULL)
        size += sizeof *deed + size_of_words(deed->result) + size_of_words(deed->watermark) +
                size_of_words(deed->until);
    return size;
}

static const char *keep(char **at, const char *words)
{
    if (words == NULL)
        return NULL;
    size_t size = strlen(words) + 1;
    char *kept = memcpy(*at, words, size);
    *at += size;
    return kept;
}

void options_copy(struct lease_options *to, const struct lease_options *from, const char *key,
                  char *words)
{
    const struct request *request = &from->request;
    struct deed *deed = NULL;
    *to = *from;
    to->request.key = key;
    if (request->deed != NULL) { /* these two first, for their alignment */
        deed = memcpy(words, request->deed, sizeof *deed);
        to->request.deed = deed;
        words += sizeof *deed;
    }
    if (request->meta != NULL) {
        memcpy(words, request->meta, size_of_meta(request->meta));
        to->request.meta = (const struct meta *)(const void *)words;
        words += size_of_meta(request->meta);
    }
    to->request.holder = keep(&words, request->holder);
    to->request.reason = keep(&words, request->reason);
    to->request.request = keep(&words, request->request);
    to->request.payload = keep(&words, request->payload);
    to->request.value = keep(&words, request->value);
    to->request.expected = keep(&words, request->expected);
    if (deed == NULL)
        return;
    deed->result = keep(&words, deed->result);
    deed->watermark = keep(&words, deed->watermark);
    deed->until = keep(&words, deed->until);
}
