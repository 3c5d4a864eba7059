/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_peer.h. */
#include "k8s_peer.h"

#include "rounds.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE = 512, BODY = 2048, ANSWER = 8192 };

struct k8s_peer {
    CURL *easy;
    struct curl_slist *headers;
    char name[64], all[PLACE], one[PLACE]; /* paths of Leases, and of ours */
    unsigned count;
    char revision[32]; /* of the Lease, from the last reply */
    size_t length;
    char reply[ANSWER];
};

/* As one of our locks: the holder's fields, and a record of this length. */
static const char lease[] =
    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\","
    "\"resourceVersion\":\"%s\","
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"nobody\"},\"annotations\":{\"bench/key\":"
    "\"%s\",\"bench/record\":\"%0300u\"}},\"spec\":{\"holderIdentity\":\"bench\","
    "\"leaseDurationSeconds\":30,\"leaseTransitions\":%u}}";

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL)
        rounds_fail(name, "is not set: run it by scripts/on-k8s.sh");
    return value;
}

/* The token is in a file beside the configuration. */
static void add_token(struct k8s_peer *peer)
{
    char path[PLACE], token[128] = "", line[192];
    const char *config = variable("KUBECONFIG"), *end = strrchr(config, '/');
    (void)snprintf(path, sizeof path, "%.*s/locker.token", (int)(end - config), config);
    FILE *file = fopen(path, "r");
    bool known = file != NULL && fgets(token, sizeof token, file) != NULL;
    if (file != NULL)
        (void)fclose(file);
    if (!known)
        rounds_fail(path, "cannot be read");
    token[strcspn(token, "\n")] = '\0';
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    peer->headers = curl_slist_append(peer->headers, line);
}

static size_t take(char *bytes, size_t size, size_t count, void *owner)
{
    struct k8s_peer *peer = owner;
    if (peer->length + size * count >= sizeof peer->reply)
        return 0;
    memcpy(peer->reply + peer->length, bytes, size * count);
    peer->length += size * count;
    peer->reply[peer->length] = '\0';
    return size * count;
}

static void note_revision(struct k8s_peer *peer)
{
    static const char begins[] = "\"resourceVersion\":\"";
    const char *at = strstr(peer->reply, begins);
    at = at != NULL ? at + sizeof begins - 1 : "";
    (void)snprintf(peer->revision, sizeof peer->revision, "%.*s", (int)strcspn(at, "\""), at);
}

struct k8s_peer *k8s_peer_open(const char *name)
{
    struct k8s_peer *peer = rounds_memory(sizeof *peer);
    (void)snprintf(peer->name, sizeof peer->name, "%s", name);
    (void)snprintf(peer->all, sizeof peer->all,
                   "%s/apis/coordination.k8s.io/v1/namespaces/leasehold-test/leases",
                   variable("K8S_SERVER"));
    (void)snprintf(peer->one, sizeof peer->one, "%.400s/%s", peer->all, peer->name);
    peer->easy = curl_easy_init();
    if (peer->easy == NULL)
        rounds_fail("curl", "cannot begin");
    peer->headers = curl_slist_append(NULL, "Content-Type: application/json");
    peer->headers = curl_slist_append(peer->headers, "Expect:");
    add_token(peer);
    (void)curl_easy_setopt(peer->easy, CURLOPT_CAINFO, variable("K8S_CA"));
    (void)curl_easy_setopt(peer->easy, CURLOPT_HTTPHEADER, peer->headers);
    (void)curl_easy_setopt(peer->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(peer->easy, CURLOPT_WRITEFUNCTION, take);
    (void)curl_easy_setopt(peer->easy, CURLOPT_WRITEDATA, peer);
    return peer;
}

void k8s_peer_close(struct k8s_peer **peer)
{
    curl_slist_free_all((*peer)->headers);
    curl_easy_cleanup((*peer)->easy);
    free(*peer);
    *peer = NULL;
}

static void ask(struct k8s_peer *peer, const char *method, const char *place, const char *body)
{
    long status = 0;
    peer->length = 0;
    (void)curl_easy_setopt(peer->easy, CURLOPT_URL, place);
    (void)curl_easy_setopt(peer->easy, CURLOPT_POSTFIELDS, body);
    (void)curl_easy_setopt(peer->easy, CURLOPT_CUSTOMREQUEST, method);
    CURLcode result = curl_easy_perform(peer->easy);
    (void)curl_easy_getinfo(peer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK || (status != 200 && status != 201))
        rounds_fail(method, result != CURLE_OK ? curl_easy_strerror(result) : "was refused");
}

static void put(struct k8s_peer *peer, const char *method, const char *place)
{
    char body[BODY];
    peer->count++;
    (void)snprintf(body, sizeof body, lease, peer->name, peer->revision, peer->name, peer->count,
                   peer->count);
    ask(peer, method, place, body);
    note_revision(peer);
}

void k8s_peer_create(struct k8s_peer *peer)
{
    peer->revision[0] = '\0';
    put(peer, "POST", peer->all);
}

void k8s_peer_replace(struct k8s_peer *peer)
{
    put(peer, "PUT", peer->one);
}

void k8s_peer_delete(struct k8s_peer *peer)
{
    ask(peer, "DELETE", peer->one, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}");
}
