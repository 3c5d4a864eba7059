/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cached heads of refs, by the name of the ref. A head that an operation uses, or that our
 * session holds, is never evicted.
 */
#include "base/hash.h"
#include "store/github/github_internal.h"
#include "wire/record_codec.h"

#include <stdlib.h>

static struct list *head_bucket(struct github *github, const char *name)
{
    return &github->buckets[hash_string(name) % GITHUB_BUCKETS];
}

static void head_free(struct github *github, struct github_head *head)
{
    list_remove(&github->heads, &head->node);
    list_remove(head_bucket(github, head->name), &head->in_bucket);
    github->head_count--;
    free(head->bytes);
    free(head->key);
    free(head);
}

static void head_evict(struct github *github)
{
    for (struct list_node *node = github->heads.first; node != NULL; node = node->next) {
        struct github_head *head = LIST_ENTRY(node, struct github_head, node);
        if (head->users > 0 || head->held)
            continue;
        head_free(github, head);
        return;
    }
}

struct github_head *github_head_use(struct github *github, const char *name)
{
    struct list *bucket = head_bucket(github, name);
    struct github_head *head = NULL;
    for (struct list_node *node = bucket->first; node != NULL && head == NULL; node = node->next) {
        struct github_head *found = LIST_ENTRY(node, struct github_head, in_bucket);
        head = strcmp(found->name, name) == 0 ? found : NULL;
    }
    if (head == NULL) {
        char key[KEY_MAX + 1];
        if (github->head_count >= GITHUB_HEADS_MAX)
            head_evict(github);
        head = calloc(1, sizeof *head);
        if (head == NULL)
            return NULL;
        text_copy(head->name, sizeof head->name, name);
        if (github_ref_key(name, key, sizeof key) && (head->key = strdup(key)) == NULL) {
            free(head);
            return NULL;
        }
        list_append(bucket, &head->in_bucket);
        github->head_count++;
    } else {
        list_remove(&github->heads, &head->node);
    }
    list_append(&github->heads, &head->node);
    head->users++;
    return head;
}

void github_head_release(struct github *github, struct github_head *head)
{
    (void)github;
    if (head != NULL)
        head->users--;
}

void github_heads_done(struct github *github)
{
    while (github->heads.first != NULL)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed head is in no list */
        head_free(github, LIST_ENTRY(github->heads.first, struct github_head, node));
}

struct record *github_head_record(struct github *github, const struct github_head *head)
{
    struct codec_error error;
    struct stamp written = {.revision = head->revision, .time_ms = head->time_ms};
    if (head->bytes == NULL ||
        record_decode(head->bytes, head->length, &github->scratch, &error) != DECODE_OK)
        return NULL;
    record_resolve(&github->scratch, &written);
    return &github->scratch;
}

void github_head_set_absent(struct github *github, struct github_head *head)
{
    head->known = true;
    head->sha[0] = head->etag[0] = '\0';
    free(head->bytes);
    head->bytes = NULL;
    head->length = 0;
    github_worker_count(github, head);
}

const char *github_head_set(struct github *github, struct github_head *head, const char *sha,
                            const struct github_commit *commit)
{
    char *bytes = NULL;
    bool same = strcmp(sha, head->sha) == 0;
    if (commit->revision < head->revision || (commit->revision == head->revision && !same))
        return "the ref was moved back, so tokens could repeat; move it to its newest commit "
               "or delete it";
    if (commit->bytes != NULL && (bytes = malloc(commit->length + 1)) == NULL)
        return "out of memory";
    if (bytes != NULL) {
        memcpy(bytes, commit->bytes, commit->length);
        bytes[commit->length] = '\0';
    }
    free(head->bytes);
    head->bytes = bytes;
    head->length = bytes != NULL ? commit->length : 0;
    head->known = true;
    head->revision = commit->revision;
    head->time_ms = commit->time_ms;
    text_copy(head->sha, sizeof head->sha, sha);
    head->etag[0] = '\0';
    const struct record *record = github_head_record(github, head);
    if (record != NULL) {
        char name[GITHUB_NAME_MAX + 1];
        github_ref_name(record->key, name);
        if (strcmp(head->name, name) != 0) {
            head->known = false;
            return "the ref of this key has the record of another key";
        }
        if (head->key == NULL)
            head->key = strdup(record->key);
    }
    github_worker_count(github, head);
    return NULL;
}
