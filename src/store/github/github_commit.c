/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of commits. That of a key has a line for people, the record, and two lines: the
 * revision, which counts along the chain, and a text that makes the commit unique. Equal commits of
 * one second would have the same name, and then two writers would both succeed. That of a worker
 * says after which time without a heartbeat it is dead. No I/O.
 */
#include "store/github/github_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REVISION_LINE "Leasehold-Revision: "
#define WRITE_LINE    "Leasehold-Write: "
#define WORKER_LINE   "Leasehold-Worker: "
#define STALE_LINE    "Leasehold-Stale: "

json_t *github_tree_body(void)
{
    return json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "tree", "path", "README", "mode", "100644",
                     "type", "blob", "content",
                     "The refs below refs/leasehold keep locks of leasehold.\n");
}

const char *github_sha(const json_t *object)
{
    const char *sha = github_string(object, "sha");
    bool valid = strlen(sha) == GITHUB_SHA && strspn(sha, "0123456789abcdef") == GITHUB_SHA;
    return valid ? sha : "";
}

bool github_ref_is_at(const struct github_reply *reply, const char *sha)
{
    return (reply->status == 200 || reply->status == 201) &&
           strcmp(github_sha(json_object_get(reply->json, "object")), sha) == 0;
}

void github_commit_unique(struct github *github, char out[48])
{
    (void)snprintf(out, 48, "%llx-%llu", (unsigned long long)github->callbacks.session,
                   (unsigned long long)++github->writes);
}

static void commit_describe(const struct store_request *request, struct text *out)
{
    const struct store_summary *summary = &request->summary;
    if (request->verb == VERB_STORE_DELETE)
        text_add(out, "free");
    else if (summary->grants > 0)
        TEXT_JOIN(out, summary->broken ? "broken, was held by " : "held by ", summary->holder);
    else if (summary->offers > 0)
        text_add(out, "offered to the next in the queue");
    else if (summary->kind == KIND_WATERMARK)
        text_add(out, "watermark");
    else if (summary->spans_ms > 0)
        TEXT_JOIN(out, "done by ", summary->holder != NULL ? summary->holder : "", ", cooling");
    else
        text_add(out, "queued for");
    if (summary->grants > 1) {
        text_add(out, " and ");
        text_add_u64(out, summary->grants - 1);
        text_add(out, " more");
    }
    if (summary->waiters > 0) {
        text_add(out, ", ");
        text_add_u64(out, summary->waiters);
        text_add(out, " waiting");
    }
}

void github_commit_message(const struct store_request *request, uint64_t revision,
                           const char *unique, struct text *out)
{
    TEXT_JOIN(out, request->key, ": ");
    commit_describe(request, out);
    text_add(out, "\n\n");
    if (request->verb == VERB_STORE_SWAP) {
        text_add_bytes(out, request->bytes, request->length);
        text_add(out, "\n\n");
    }
    text_add(out, REVISION_LINE);
    text_add_u64(out, revision);
    TEXT_JOIN(out, "\n" WRITE_LINE, unique, "\n");
}

void github_beat_message(uint64_t session, int64_t stale_ms, const char *unique, struct text *out)
{
    text_add(out, "worker ");
    text_add_hex(out, session);
    text_add(out, " is alive\n\n" WORKER_LINE);
    text_add_hex(out, session);
    text_add(out, "\n" STALE_LINE);
    text_add_i64(out, stale_ms);
    TEXT_JOIN(out, "\n" WRITE_LINE, unique, "\n");
}

/* The number after the last line that begins so; false if there is none in these bounds. */
static bool commit_number(const char *message, const char *line, uint64_t most, uint64_t *out)
{
    const char *at = NULL;
    char *end;
    for (const char *next = message; (next = strstr(next, line)) != NULL; next++)
        at = next == message || next[-1] == '\n' ? next : at;
    if (at == NULL)
        return false;
    at += strlen(line);
    unsigned long long number = strtoull(at, &end, 10);
    *out = number;
    return *at >= '1' && *at <= '9' && (*end == '\n' || *end == '\0') && number <= most;
}

static const char *commit_parse_date(const json_t *commit, int64_t *out_ms)
{
    *out_ms = github_time_ms(github_string(json_object_get(commit, "committer"), "date"));
    return *out_ms < 0 ? "the commit has no date" : NULL;
}

const char *github_commit_parse(const json_t *commit, struct github_commit *out)
{
    const char *message = github_string(commit, "message");
    *out = (struct github_commit){0};
    if (!commit_number(message, REVISION_LINE, REVISION_MAX, &out->revision))
        return "the commit is not a record of leasehold";
    const char *from = strstr(message, "\n\n");
    if (from != NULL && strncmp(from + 2, REVISION_LINE, sizeof REVISION_LINE - 1) != 0) {
        const char *to = strstr(from + 2, "\n\n" REVISION_LINE);
        if (to == NULL)
            return "the commit is not a record of leasehold";
        out->bytes = from + 2;
        out->length = (size_t)(to - out->bytes);
        if (out->length > RECORD_MAX)
            return "the record is too long";
    }
    return commit_parse_date(commit, &out->time_ms);
}

const char *github_beat_parse(const json_t *commit, int64_t *out_beat_ms, int64_t *out_stale_ms)
{
    uint64_t stale_ms;
    if (!commit_number(github_string(commit, "message"), STALE_LINE, TTL_MAX_MS, &stale_ms))
        return "the commit is not a heartbeat of leasehold";
    *out_stale_ms = (int64_t)stale_ms;
    return commit_parse_date(commit, out_beat_ms);
}
