/* SPDX-License-Identifier: Apache-2.0 */
/* See github_commit.h. */
#include "wire/github_commit.h"

#include "core/record.h"

#include <string.h>

#define REVISION_LINE "Leasehold-Revision: "
#define WRITE_LINE    "Leasehold-Write: "
#define WORKER_LINE   "Leasehold-Worker: "
#define STALE_LINE    "Leasehold-Stale: "

void github_commit_write(const char *title, const struct github_commit *commit, const char *unique,
                         struct text *out)
{
    TEXT_JOIN(out, title, "\n\n");
    if (commit->bytes != NULL) {
        text_add_bytes(out, commit->bytes, commit->length);
        text_add(out, "\n\n");
    }
    text_add(out, REVISION_LINE);
    text_add_u64(out, commit->revision);
    TEXT_JOIN(out, "\n" WRITE_LINE, unique, "\n");
}

void github_beat_write(uint64_t session, int64_t stale_ms, const char *unique, struct text *out)
{
    text_add(out, "worker ");
    text_add_hex(out, session);
    text_add(out, " is alive\n\n" WORKER_LINE);
    text_add_hex(out, session);
    text_add(out, "\n" STALE_LINE);
    text_add_i64(out, stale_ms);
    TEXT_JOIN(out, "\n" WRITE_LINE, unique, "\n");
}

/* The number after the last line that begins so; 0 if there is none in these bounds. */
static uint64_t commit_number(const char *message, const char *line, uint64_t most)
{
    const char *at = NULL;
    uint64_t number = 0;
    for (const char *next = message; (next = strstr(next, line)) != NULL; next++)
        at = next == message || next[-1] == '\n' ? next : at;
    if (at == NULL)
        return 0;
    for (at += strlen(line); *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
        if (number == 0 || number > most) /* a leading zero, too */
            return 0;
    }
    return *at == '\n' || *at == '\0' ? number : 0;
}

const char *github_commit_read(const char *message, struct github_commit *out)
{
    static const char wrong[] = "the commit is not a record of leasehold";
    const char *from = strstr(message, "\n\n");
    *out = (struct github_commit){.revision = commit_number(message, REVISION_LINE, REVISION_MAX)};
    if (out->revision == 0)
        return wrong;
    if (from == NULL || strncmp(from + 2, REVISION_LINE, sizeof REVISION_LINE - 1) == 0)
        return NULL;
    const char *to = strstr(from + 2, "\n\n" REVISION_LINE);
    if (to == NULL)
        return wrong;
    out->bytes = from + 2;
    out->length = (size_t)(to - out->bytes);
    return out->length > RECORD_MAX ? "the record is too long" : NULL;
}

int64_t github_beat_read(const char *message)
{
    return (int64_t)commit_number(message, STALE_LINE, TTL_MAX_MS);
}
