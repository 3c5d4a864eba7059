/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cached heads of refs, by the name of the ref. A head that an operation uses, or that our
 * session holds, is never evicted.
 */
#include "store/github/github_internal.h"
#include "wire/record_codec.h"

#include <stdlib.h>

static void head_free(struct github *github, struct github_head *head)
{
    list_remove(&github->heads, &head->node);
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

static struct github_head *head_new(struct github *github, const char *name)
{
    char key[KEY_MAX + 1];
    if (github->head_count >= GITHUB_HEADS_MAX)
        head_evict(github);
    struct github_head *head = calloc(1, sizeof *head);
    if (head == NULL)
        return NULL;
    text_copy(head->name, sizeof head->name, name);
    if (github_ref_key(name, key, sizeof key) && (head->key = strdup(key)) == NULL) {
        free(head);
        return NULL;
    }
    github->head_count++;
    return head;
}

struct github_head *github_head_use(struct github *github, const char *name)
{
    struct list_node *node = github->heads.last;
    while (node != NULL && strcmp(LIST_ENTRY(node, struct github_head, node)->name, name) != 0)
        node = node->previous;
    struct github_head *head = LIST_ENTRY(node, struct github_head, node);
    if (head != NULL)
        list_remove(&github->heads, node);
    else if ((head = head_new(github, name)) == NULL)
        return NULL;
    list_append(&github->heads, &head->node);
    head->users++;
    return head;
}

void github_head_release(struct github_head *head)
{
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

/* Its record, if there is one, must be that of the ref's key. */
static const char *head_check_key(struct github *github, struct github_head *head)
{
    const struct record *record = github_head_record(github, head);
    char name[GITHUB_NAME_MAX + 1];
    if (record == NULL)
        return NULL;
    github_ref_name(record->key, name);
    if (strcmp(head->name, name) != 0) {
        head->known = false;
        return "the ref of this key has the record of another key";
    }
    if (head->key == NULL)
        head->key = strdup(record->key);
    return NULL;
}

const char *github_head_set(struct github *github, struct github_head *head, const char *sha,
                            const struct github_commit *commit)
{
    char *bytes = NULL;
    size_t length = commit != NULL ? commit->length : 0;
    bool same = strcmp(sha, head->sha) == 0;
    if (commit != NULL &&
        (commit->revision < head->revision || (commit->revision == head->revision && !same)))
        return "the ref was moved back, so tokens could repeat; move it to its newest commit "
               "or delete it";
    if (commit != NULL && commit->bytes != NULL && (bytes = malloc(length + 1)) == NULL)
        return "out of memory";
    if (bytes != NULL)
        memcpy(bytes, commit->bytes, length);
    free(head->bytes);
    head->bytes = bytes;
    head->length = bytes != NULL ? length : 0;
    head->known = true;
    text_copy(head->sha, sizeof head->sha, sha);
    head->etag[0] = '\0';
    if (commit != NULL) {
        head->revision = commit->revision;
        head->time_ms = commit->time_ms;
    }
    const char *wrong = head_check_key(github, head);
    if (wrong == NULL)
        github_worker_count(github, head);
    return wrong;
}
