/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of our Leases, page by page. A faulty server can return an endless list: pages and bytes
 * have a limit, and each continue token must differ from the one before.
 */
#include "store/k8s/k8s_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 256 << 20 };

void k8s_list_page(struct k8s_request *pending)
{
    char path[PAGE_PATH];
    k8s_page_path(path, pending->page);
    k8s_request_send(pending, PHASE_LISTING, "GET", path, NULL);
}

static void k8s_list_report_item(struct k8s_request *pending, const json_t *json, int64_t now_ms)
{
    struct k8s *k8s = pending->k8s;
    struct k8s_lease lease;
    if (lease_cache_parse(k8s, json, &lease) != NULL || lease.state != K8S_LEASE_OURS)
        return;
    const char *key = k8s_key_of(k8s, &lease);
    const char *prefix = pending->base.request.key;
    if (key == NULL || strncmp(key, prefix, strlen(prefix)) != 0)
        return;
    struct store_reply reply = k8s_lease_reply(k8s, &lease, key);
    reply.more = true;
    reply.now_ms = now_ms;
    pending_reply(&pending->base, &reply);
}

void k8s_list_on_page(struct k8s_request *pending, const struct http_response *reply)
{
    json_t *json = kube_parse(reply->body, reply->body_length);
    const char *wrong = NULL;
    char *next = kube_list_next(json, pending->page, &wrong);
    int64_t now_ms = reply->date_s >= 0 ? reply->date_s * 1000 : TIME_UNKNOWN;
    const json_t *items = json_object_get(json, "items");
    for (size_t i = 0; i < json_array_size(items); i++)
        k8s_list_report_item(pending, json_array_get(items, i), now_ms);
    free(pending->page);
    pending->page = next;
    pending_extend(&pending->base); /* each page has the whole timeout */
    pending->listed += reply->body_length;
    if (!json_is_array(items) && !json_is_null(items)) /* null: Go's empty slice */
        wrong = "the reply is not a list";
    else if (next != NULL && (++pending->pages >= PAGES_MAX || pending->listed > LISTED_MAX))
        wrong = "the list is too long: use a namespace for each part of it";
    json_decref(json);
    if (wrong != NULL)
        k8s_request_fail(pending, REPLY_TROUBLE, wrong);
    else if (pending->page != NULL)
        k8s_list_page(pending);
    else
        k8s_request_finish_absent(pending, REPLY_OK, reply->date_s);
}
