/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service with three replicas that checks whether an object exists and creates it if not, under a
 * name that contains the time: 3 processes × 100 concurrent requests for one fingerprint, started
 * just before a second ends. With a lock on the fingerprint, and with an id that is done once, one
 * object is created and all 300 get a reply. With neither, several are created, which shows that
 * the race exists. The objects are ConfigMaps on the API server of on-k8s.sh; the service uses its
 * own HTTP client for them. check_then_create URL [--rounds N]
 */
#include "leasehold.h"
#include "leasehold_once.h"
#include "fixture.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROCESSES = 3, REQUESTS = 100, GAP_US = 50000, ANSWER_MOST = 1 << 20, PATH_MOST = 400 };

#define MAPS "/api/v1/namespaces/leasehold-test/configmaps"

enum way { BY_LOCK, BY_ONCE, UNPROTECTED };
static const char *const way_words[] = {"under a lock", "done once", "unprotected"};

struct shared {
    enum way way;
    char fingerprint[40];
    _Atomic int64_t begin_at_us;
    atomic_uint ready, created, duplicates, failed;
};

static const char *url;
static struct shared *shared;
static struct lh_client *client;

/* ---- the service's own client ---- */

struct service {
    CURL *curl;
    struct curl_slist *headers;
    char reply[ANSWER_MOST];
    size_t length;
};

static size_t take_bytes(char *bytes, size_t size, size_t count, void *owner)
{
    struct service *service = owner;
    if (service->length + size * count >= ANSWER_MOST)
        return 0;
    memcpy(service->reply + service->length, bytes, size * count);
    service->length += size * count;
    return size * count;
}

/* The administrator's token is next to the kubeconfig. */
static bool read_token(char *out, size_t size)
{
    char path[PATH_MOST];
    const char *config = getenv("K8S_ADMIN");
    const char *end = config != NULL ? strstr(config, "kubeconfig") : NULL;
    if (end == NULL)
        return false;
    (void)snprintf(path, sizeof path, "%.*stoken", (int)(end - config), config);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool got = fgets(out, (int)size, file) != NULL;
    out[strcspn(out, "\n")] = '\0';
    (void)fclose(file);
    return got;
}

static struct service *service_new(void)
{
    char token[128], header[160];
    struct service *service = calloc(1, sizeof *service);
    if (service == NULL || !read_token(token, sizeof token) ||
        (service->curl = curl_easy_init()) == NULL) {
        free(service);
        return NULL;
    }
    (void)snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    service->headers = curl_slist_append(NULL, header);
    service->headers = curl_slist_append(service->headers, "Content-Type: application/json");
    (void)curl_easy_setopt(service->curl, CURLOPT_HTTPHEADER, service->headers);
    (void)curl_easy_setopt(service->curl, CURLOPT_CAINFO, getenv("K8S_CA"));
    (void)curl_easy_setopt(service->curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(service->curl, CURLOPT_TIMEOUT, 30L);
    (void)curl_easy_setopt(service->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    (void)curl_easy_setopt(service->curl, CURLOPT_WRITEDATA, service);
    return service;
}

static void service_free(struct service *service)
{
    if (service == NULL)
        return;
    curl_easy_cleanup(service->curl);
    curl_slist_free_all(service->headers);
    free(service);
}

/* The status, or 0. */
static long ask(struct service *service, const char *path, const char *body)
{
    char whole[PATH_MOST];
    long status = 0;
    (void)snprintf(whole, sizeof whole, "%s%s", getenv("K8S_SERVER"), path);
    service->length = 0;
    (void)curl_easy_setopt(service->curl, CURLOPT_URL, whole);
    (void)curl_easy_setopt(service->curl, CURLOPT_HTTPGET, 1L);
    if (body != NULL)
        (void)curl_easy_setopt(service->curl, CURLOPT_COPYPOSTFIELDS, body);
    if (curl_easy_perform(service->curl) == CURLE_OK)
        (void)curl_easy_getinfo(service->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The number of objects of the fingerprint; −1: unknown. */
static int count_objects(struct service *service)
{
    char path[PATH_MOST];
    (void)snprintf(path, sizeof path, MAPS "?labelSelector=fingerprint%%3D%s", shared->fingerprint);
    if (ask(service, path, NULL) != 200)
        return -1;
    json_t *list = json_loadb(service->reply, service->length, 0, NULL);
    int count = list != NULL ? (int)json_array_size(json_object_get(list, "items")) : -1;
    json_decref(list);
    return count;
}

/* Checks, then creates: the name contains the second, as the service's names do. */
static bool process(struct service *service, atomic_uint **out_answer)
{
    char body[PATH_MOST];
    int there = count_objects(service);
    *out_answer = &shared->duplicates;
    if (there != 0)
        return there > 0;
    /* The work between check and create: the window of the race. */
    struct random random = {(uint64_t)fixture_now_us()};
    fixture_pause_us((int64_t)random_below(&random, GAP_US));
    (void)snprintf(body, sizeof body,
                   "{\"metadata\":{\"name\":\"rr-%s-%lld\",\"labels\":{\"fingerprint\":\"%s\"}}}",
                   shared->fingerprint, (long long)time(NULL), shared->fingerprint);
    long status = ask(service, MAPS, body);
    if (status == 201)
        *out_answer = &shared->created;
    return status == 201 || status == 409;
}

/* ---- a request ---- */

static bool request_by_lock(struct service *service, atomic_uint **out_answer)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = NULL;
    options.wait_ms = LH_WAIT_FOREVER;
    if (lh_acquire(client, shared->fingerprint, &options, &lease, &report) != LH_OK) {
        fixture_print("%s", report.text);
        return false;
    }
    bool answered = process(service, out_answer);
    (void)lh_release(&lease, NULL);
    return answered;
}

static bool request_by_once(struct service *service, atomic_uint **out_answer)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_once once = LH_ONCE_INIT;
    options.wait_ms = LH_WAIT_FOREVER;
    enum lh_outcome outcome = lh_once_begin(client, shared->fingerprint, &options, &once, &report);
    *out_answer = &shared->duplicates;
    done.result = "created";
    if (outcome == LH_OK)
        return process(service, out_answer) &&
               lh_once_finish(client, shared->fingerprint, once.token, &done, NULL) == LH_OK;
    if (outcome == LH_DONE && strcmp(once.result, done.result) == 0)
        return true;
    fixture_print("%s: %s", lh_outcome_name(outcome), report.text);
    return false;
}

static void *request(void *unused)
{
    struct service *service = service_new();
    atomic_uint *reply = NULL;
    bool answered = false;
    (void)unused;
    if (service != NULL)
        (void)count_objects(service); /* connects before all begin */
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->begin_at_us) == 0 ||
           fixture_now_us() < atomic_load(&shared->begin_at_us))
        fixture_pause_us(1000);
    if (service != NULL)
        answered = shared->way == BY_LOCK   ? request_by_lock(service, &reply)
                   : shared->way == BY_ONCE ? request_by_once(service, &reply)
                                            : process(service, &reply);
    atomic_fetch_add(answered ? reply : &shared->failed, 1);
    service_free(service);
    return NULL;
}

static void replica(struct fixture *fixture, size_t child)
{
    pthread_t threads[REQUESTS];
    struct lh_report report = LH_REPORT_INIT;
    (void)fixture;
    (void)child;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    if (lh_open(url, NULL, &client, &report) != LH_OK) {
        fixture_print("%s", report.text);
        atomic_fetch_add(&shared->failed, REQUESTS);
        atomic_fetch_add(&shared->ready, REQUESTS);
        return;
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        if (pthread_create(&threads[i], NULL, request, NULL) != 0)
            abort();
    }
    for (size_t i = 0; i < REQUESTS; i++)
        (void)pthread_join(threads[i], NULL);
    lh_close(&client);
}

/* ---- rounds ---- */

/* All begin shortly before the wall clock's next second, in each round a bit earlier, so that the
 * first creation falls on either side of it. */
static void begin(unsigned round)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t left_us = 1000000 - now.tv_nsec / 1000 - 20000 - 50000 * (int64_t)(round % 10);
    if (left_us < 50000)
        left_us += 1000000;
    atomic_store(&shared->begin_at_us, fixture_now_us() + left_us);
}

/* The number of objects; −1: a request got no reply. */
static int play(struct fixture *fixture, struct service *service, enum way way, unsigned round)
{
    memset(shared, 0, sizeof *shared);
    shared->way = way;
    (void)snprintf(shared->fingerprint, sizeof shared->fingerprint, "fp-%" PRIx64 "-%d-%u",
                   fixture->seed & 0xffffff, (int)way, round);
    for (size_t child = 0; child < PROCESSES; child++)
        fixture_start(fixture, child, replica);
    while (atomic_load(&shared->ready) < PROCESSES * REQUESTS && !fixture_late(fixture))
        fixture_pause_us(1000);
    int64_t began_us = fixture_now_us();
    begin(round);
    bool joined = true;
    for (size_t child = 0; child < PROCESSES; child++)
        joined = fixture_join(fixture, child) && joined;
    int objects = count_objects(service);
    unsigned answered = shared->created + shared->duplicates;
    if (!joined || answered != PROCESSES * REQUESTS || (int)shared->created != objects) {
        fixture_print("round %u: %u answered, %u failed, %u created, %d objects", round, answered,
                      shared->failed, shared->created, objects);
        return -1;
    }
    fixture_print("%s, round %u: %d created, %u told of it, %" PRId64 " ms", way_words[way], round,
                  objects, shared->duplicates, (fixture_now_us() - began_us) / 1000);
    return objects;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    fixture_open(&fixture, argc, argv, /* rounds= */ 2, /* limit_s= */ 300, /* round_ms= */ 30000,
                 sizeof *shared);
    shared = fixture.shared;
    url = fixture.url;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    struct service *service = service_new();
    int most = 0;
    unsigned good[2] = {0};
    for (unsigned round = 0; service != NULL && round < fixture.rounds && !fixture_late(&fixture);
         round++) {
        good[BY_LOCK] += play(&fixture, service, BY_LOCK, round) == 1;
        good[BY_ONCE] += play(&fixture, service, BY_ONCE, round) == 1;
    }
    for (unsigned round = 0; service != NULL && round < 30 && most < 2; round++)
        most = play(&fixture, service, UNPROTECTED, round);
    fixture_case(&fixture, good[BY_LOCK] == fixture.rounds,
                 "under a lock: one object in %u of %" PRIu64, good[BY_LOCK], fixture.rounds);
    fixture_case(&fixture, good[BY_ONCE] == fixture.rounds,
                 "done once: one object in %u of %" PRIu64, good[BY_ONCE], fixture.rounds);
    fixture_case(&fixture, most > 1, "unprotected: %d objects, so there was something to prevent",
                 most);
    service_free(service);
    return fixture_close(&fixture);
}
