/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of our Leases, page by page. A server can say that a list goes on for ever: pages and
 * bytes have a limit, and each page must name another one than the page before.
 */
#include "io/host.h"
#include "store/k8s/k8s_inside.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 256 << 20 };

void lease_pages_begin(struct errand *errand)
{
    char path[PAGE_PATH];
    k8s_page_path(path, errand->page);
    errand_ask(errand, ERRAND_LISTS, "GET", path, NULL);
}

static void tell_item(struct errand *errand, const json_t *json, int64_t now_ms)
{
    struct k8s *k8s = errand->k8s;
    struct object object;
    if (memo_read(k8s, json, &object) != NULL || object.state != OBJECT_OURS)
        return;
    const char *key = k8s_key_of(k8s, &object);
    if (key == NULL || strncmp(key, errand->request.key, strlen(errand->request.key)) != 0)
        return;
    struct store_answer answer = k8s_answer(k8s, &object, key);
    answer.more = true;
    answer.now_ms = now_ms;
    errand->done(errand->caller, &answer);
}

void lease_pages_hear(struct errand *errand, const struct http_answer *answer)
{
    json_t *json = kube_parse(answer->body, answer->body_length);
    const char *wrong = NULL;
    char *next = kube_list_next(json, errand->page, &wrong);
    int64_t now_ms = answer->date_s >= 0 ? answer->date_s * 1000 : TIME_UNKNOWN;
    const json_t *items = json_object_get(json, "items");
    for (size_t i = 0; i < json_array_size(items); i++)
        tell_item(errand, json_array_get(items, i), now_ms);
    free(errand->page);
    errand->page = next;
    errand->give_up_at_ms = host_boot_ms() + errand->k8s->site.patience_ms; /* for each page */
    errand->listed += answer->body_length;
    if (!json_is_array(items) && !json_is_null(items)) /* null: an empty one of Go's */
        wrong = "the answer is no list";
    else if (next != NULL && (++errand->pages >= PAGES_MAX || errand->listed > LISTED_MAX))
        wrong = "the list is too long: use a namespace for each part of it";
    json_decref(json);
    if (wrong != NULL)
        errand_tell_trouble(errand, ANSWER_TROUBLE, wrong);
    else if (errand->page != NULL)
        lease_pages_begin(errand);
    else
        errand_tell_absent(errand, ANSWER_OK, answer->date_s);
}
