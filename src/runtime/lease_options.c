/* SPDX-License-Identifier: Apache-2.0 */
/* See lease_options.h. */
#include "runtime/lease_options.h"

#include <string.h>

static size_t string_size(const char *string)
{
    return string != NULL ? strlen(string) + 1 : 0;
}

/* Only the part in use. */
static size_t meta_size(const struct meta *meta)
{
    return meta != NULL ? offsetof(struct meta, text) + meta->used : 0;
}

size_t lease_options_size(const struct lease_options *options)
{
    const struct request *request = &options->request;
    const struct completion *completion = request->completion;
    size_t size = meta_size(request->meta) + string_size(request->holder) +
                  string_size(request->reason) + string_size(request->request) +
                  string_size(request->payload) + string_size(request->value) +
                  string_size(request->expected);
    if (completion != NULL)
        size += sizeof *completion + string_size(completion->result) +
                string_size(completion->watermark) + string_size(completion->until);
    return size;
}

static const char *copy_string(char **at, const char *string)
{
    if (string == NULL)
        return NULL;
    size_t size = strlen(string) + 1;
    char *kept = memcpy(*at, string, size);
    *at += size;
    return kept;
}

void lease_options_copy(struct lease_options *to, const struct lease_options *from, const char *key,
                        char *storage)
{
    const struct request *request = &from->request;
    struct completion *completion = NULL;
    *to = *from;
    to->request.key = key;
    if (request->completion != NULL) { /* these two first, for their alignment */
        completion = memcpy(storage, request->completion, sizeof *completion);
        to->request.completion = completion;
        storage += sizeof *completion;
    }
    if (request->meta != NULL) {
        memcpy(storage, request->meta, meta_size(request->meta));
        to->request.meta = (const struct meta *)(const void *)storage;
        storage += meta_size(request->meta);
    }
    to->request.holder = copy_string(&storage, request->holder);
    to->request.reason = copy_string(&storage, request->reason);
    to->request.request = copy_string(&storage, request->request);
    to->request.payload = copy_string(&storage, request->payload);
    to->request.value = copy_string(&storage, request->value);
    to->request.expected = copy_string(&storage, request->expected);
    if (completion == NULL)
        return;
    completion->result = copy_string(&storage, completion->result);
    completion->watermark = copy_string(&storage, completion->watermark);
    completion->until = copy_string(&storage, completion->until);
}
