/* SPDX-License-Identifier: Apache-2.0 */
/* The list of our Leases, page by page; json_api.h limits their number. */
#include "store/k8s/k8s_internal.h"

#include <string.h>

void k8s_list_page(struct k8s_request *pending)
{
    char path[KUBE_PATH_MAX];
    kube_page_path(path, pending->k8s->leases, K8S_LEASE_SELECTOR, &pending->pages);
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

void k8s_list_on_page(struct k8s_request *pending, const struct json_reply *reply)
{
    const char *wrong;
    const json_t *items = kube_page_items(&pending->pages, reply->json, reply->length, &wrong);
    for (size_t i = 0; i < json_array_size(items); i++)
        k8s_list_report_item(pending, json_array_get(items, i), reply->now_ms);
    pending_extend(&pending->base); /* each page has the whole timeout */
    if (wrong != NULL)
        k8s_request_fail(pending, REPLY_TROUBLE, wrong);
    else if (pending->pages.next != NULL)
        k8s_list_page(pending);
    else
        k8s_request_finish_absent(pending, REPLY_OK, reply->now_ms);
}
