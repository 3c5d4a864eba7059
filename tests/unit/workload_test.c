/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads with an API server that misbehaves on demand: it replies by the path, from a list for
 * each kind of request. A good server is the real one (tests/e2e/workload.sh).
 */
#include "http_kit.h"
#include "process/host.h"
#include "workload/workload_internal.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define POD(revision, status)                                                                 \
    "{\"metadata\":{\"name\":\"t\",\"uid\":\"u\",\"resourceVersion\":\"" revision "\","       \
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{\"leasehold/key\":"      \
    "\"t\",\"leasehold/request\":\"r\",\"leasehold/holder\":\"h\",\"leasehold/cooldown-ms\":" \
    "\"0\"}},\"status\":{" status "}}"
#define DONE        "\"phase\":\"Succeeded\""
#define LIST(items) "200 OK\n{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"
#define DISCOVERY \
    "200 OK\n{\"resources\":[{\"name\":\"pods\",\"kind\":\"Pod\",\"namespaced\":true}]}"

/* ---- the server ---- */

/* Replies to requests of a kind, one after the other; the last one is repeated. */
struct answers {
    const char *const *next; /* NULL after the last */
    unsigned given;
};

static const char *const deleted[] = {"200 OK\n{}", NULL};
static struct answers creations, deletions, lists, watches, reads;
static char deletion[HTTP_REQUEST_SIZE], list[HTTP_REQUEST_SIZE]; /* the last ones */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *take(struct answers *answers)
{
    (void)pthread_mutex_lock(&lock);
    const char *words = answers->next[0];
    if (answers->next[1] != NULL)
        answers->next++;
    answers->given++;
    (void)pthread_mutex_unlock(&lock);
    return words;
}

static const char *answer_to(const char *request)
{
    /* As a server of 1.25 or newer does, and only on request. */
    if (strncmp(request, "POST", 4) == 0 && strstr(request, "?fieldValidation=Strict ") != NULL &&
        strstr(request, "\"typo\"") != NULL)
        return "400 Bad Request\n{\"message\":\"Pod in version \\\"v1\\\" cannot be handled as a "
               "Pod: "
               "strict decoding error: unknown field \\\"spec.typo\\\", unknown field "
               "\\\"spec.containers[0].imagePullPolicies\\\", unknown field "
               "\\\"spec.containers[0].livenessProbes\\\", unknown field "
               "\\\"spec.containers[0].resources.limits.memmory\\\"\"}";
    if (strncmp(request, "POST", 4) == 0)
        return creations.next != NULL ? take(&creations) : "201 Created\n" POD("5", "");
    if (strncmp(request, "DELETE", 6) == 0) {
        (void)snprintf(deletion, sizeof deletion, "%s", request);
        return take(&deletions);
    }
    if (strstr(request, "/pods/t ") != NULL)
        return take(&reads);
    if (strstr(request, "watch=true") != NULL)
        return take(&watches);
    if (strstr(request, "limit=") == NULL)
        return DISCOVERY;
    (void)snprintf(list, sizeof list, "%s", request);
    return take(&lists);
}

static bool say_to(int file, const char *request)
{
    char said[HTTP_REQUEST_SIZE];
    const char *words = answer_to(request), *object = strstr(words, "\n{");
    const char *body = 1 + (object != NULL ? object : strchr(words, '\n'));
    bool endless = *body == '\0';
    int length = snprintf(said, sizeof said, "HTTP/1.1 %.*s\r\n%s", (int)(body - words - 1), words,
                          "Date: Thu, 01 Jan 2026 00:00:09 GMT\r\n");
    if (!endless)
        (void)snprintf(said + length, sizeof said - (size_t)length, "Content-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    else
        (void)snprintf(said + length, sizeof said - (size_t)length, "\r\n");
    http_kit_say(file, said);
    if (endless)
        http_kit_be_silent(file);
    return true;
}

/* ---- the client ---- */

static char path[64];
static struct workloads *workloads;
static struct workload_result reply;

static unsigned warnings, steps;
static char warning[256];

static void on_warning(void *user, const char *text)
{
    (void)user;
    warnings++;
    (void)snprintf(warning, sizeof warning, "%s", text);
}

static void on_step(void *user, const struct workload_result *now)
{
    (void)user;
    steps++;
    assert_string_equal(now->name, "t");
    assert_int_equal(now->view.state, END_RUNS);
    assert_true(now->since_ms >= 9000); /* by the server's clock */
}

static int begin(void **state)
{
    struct workloads_options options = {.holder = "h", .timeout_ms = 1000, .warn = on_warning};
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/leasehold-load-XXXXXX");
    int file = mkstemp(path);
    uint16_t port = http_kit_start(say_to);
    if (file < 0 || port == 0)
        return -1;
    (void)dprintf(file,
                  "current-context: x\nclusters: [{name: x, cluster: {server: "
                  "'http://127.0.0.1:%u'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n",
                  port);
    (void)close(file);
    (void)setenv("KUBECONFIG", path, 1);
    creations = lists = watches = reads = (struct answers){0};
    deletions = (struct answers){.next = deleted};
    warnings = steps = 0;
    return workloads_open("k8s://blue", "{apiVersion: v1, kind: Pod}", &options, &workloads, &reply)
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    workloads_close(&workloads);
    http_kit_stop();
    return unlink(path);
}

static void run_with(struct workload_run wish)
{
    wish.target = "t";
    wish.request = "r";
    workloads_run(workloads, &wish, &reply);
}

static void run(void)
{
    run_with((struct workload_run){0});
}

/* ---- cases ---- */

/* Such as the login page of a proxy. */
static void a_page_that_is_no_list_loses_nothing(void **state)
{
    static const char *const pages[] = {"200 OK\n<html>", "200 OK\n{\"items\":7}",
                                        LIST(POD("6", DONE)), NULL};
    static const char *const silent[] = {"200 OK\n", NULL};
    (void)state;
    lists.next = pages;
    watches.next = silent;
    run();
    assert_int_equal(lists.given, 3);
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_int_equal(reply.view.state, END_DONE);
}

static void where_no_api_server_answers_nothing_is_free(void **state)
{
    static const char *const lost[] = {"404 Not Found\n404 page not found", NULL};
    static const char *const gone[] = {"404 Not Found\n{\"reason\":\"NotFound\"}", NULL};
    (void)state;
    reads.next = lost;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_true(reply.usage || reply.outcome != OUTCOME_OK);
    assert_non_null(strstr(reply.text, "answers 404"));
    workloads_remove(workloads, "t", NULL, &reply);
    assert_true(reply.usage || reply.outcome != OUTCOME_OK);
    reads.next = gone;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_false(reply.usage);
    assert_int_equal(reply.outcome, OUTCOME_OK);
}

/* The status alone does not say what is wrong with the reply. */
static void a_reply_that_is_no_object_says_why(void **state)
{
    static const char *const page[] = {"200 OK\n<html>", NULL};
    static const char *const nameless[] = {"200 OK\n{\"kind\":\"Pod\"}", NULL};
    static const char *const wordless[] = {"418 Teapot\n{}", NULL};
    static const char *const created[] = {"201 Created\n<html>", NULL};
    (void)state;
    reads.next = page;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_int_equal(reply.outcome, OUTCOME_UNAVAILABLE);
    assert_string_equal(reply.text, "the API server answers 200: the body is not JSON; check "
                                    "whether a proxy is in between");
    reads.next = nameless;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_string_equal(reply.text, "the API server answers 200: the body is not an object with "
                                    "a uid and a revision");
    reads.next = wordless;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_string_equal(reply.text, "the API server answers 418: it gives no reason");
    creations.next = created;
    run();
    assert_non_null(strstr(reply.text, "answers 201: the body is not JSON"));
}

/* An API server that has just started denies everything until it has read its own rules. */
static void a_request_permitted_once_asks_again(void **state)
{
    static const char *const never[] = {"403 Forbidden\n{}", NULL};
    static const char *const late[] = {"200 OK\n" POD("6", ""), "403 Forbidden\n{}",
                                       "404 Not Found\n{\"reason\":\"NotFound\"}", NULL};
    (void)state;
    reads.next = never;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_int_equal(reply.outcome, OUTCOME_DENIED);
    assert_int_equal(reads.given, 1);
    reads.next = late;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_int_equal(reply.outcome, OUTCOME_BUSY);
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_int_equal(reads.given, 4);
}

static void all_tries_together_end_with_the_timeout(void **state)
{
    static const char *const slow[] = {"503 No\n{}", "503 No\n{}", "503 No\n{}",
                                       "503 No\n{}", "200 OK\n",   NULL};
    int64_t began_ms = host_boot_ms();
    (void)state;
    reads.next = slow;
    workloads->timeout_ms = 3000;
    workloads_query(workloads, "t", /* cooldown_ms= */ 0, &reply);
    assert_int_equal(reply.outcome, OUTCOME_UNAVAILABLE);
    assert_in_range(reads.given, 2, 5); /* a busy machine has time for fewer */
    assert_true(host_boot_ms() - began_ms < 6000);
}

/* A device between us and the server may drop the connection silently. */
static void a_watch_that_goes_silent_is_begun_anew(void **state)
{
    static const char *const runs[] = {LIST(POD("6", "")), NULL};
    static const char *const stalls[] = {
        "200 OK\n", "200 OK\n{\"type\":\"MODIFIED\",\"object\":" POD("8", DONE) "}\n", NULL};
    (void)state;
    lists.next = runs;
    watches.next = stalls;
    workloads->watch_s = 1;
    int64_t began_ms = host_boot_ms();
    run();
    assert_int_equal(watches.given, 2);
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_int_equal(reply.view.state, END_DONE);
    assert_true(host_boot_ms() - began_ms >= 1000);
}

/* An admission webhook changes the object, and the server replies 201. */
static void an_object_that_came_back_changed_is_removed_again(void **state)
{
    static const char *const changed[] = {
        "201 Created\n{\"metadata\":{\"name\":\"t\",\"uid\":\"u\",\"resourceVersion\":\"5\"}}",
        "201 Created\n{\"metadata\":{\"name\":\"t\",\"uid\":\"u\",\"resourceVersion\":\"5\","
        "\"annotations\":{\"leasehold/key\":\"t\",\"leasehold/request\":\"other\","
        "\"leasehold/holder\":\"h\",\"leasehold/cooldown-ms\":\"0\"}}}",
        NULL};
    /* A controller writes to it at once; its uid shows that it is the same object. */
    static const char *const written[] = {"409 Conflict\n{}", "200 OK\n{}", NULL};
    static const char *const newer[] = {
        "200 OK\n{\"metadata\":{\"name\":\"t\",\"uid\":\"u\",\"resourceVersion\":\"6\"}}", NULL};
    (void)state;
    creations.next = changed;
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0) {
            deletions.next = written;
            reads.next = newer;
        }
        run();
        assert_int_equal(reply.outcome, OUTCOME_UNAVAILABLE);
        assert_false(reply.usage);
        assert_non_null(strstr(reply.text, "came back changed"));
        assert_non_null(strstr(reply.text, "it was removed"));
        assert_non_null(strstr(deletion, i > 0 ? "{\"uid\":\"u\",\"resourceVersion\":\"6\"}"
                                               : "{\"uid\":\"u\",\"resourceVersion\":\"5\"}"));
    }
    assert_int_equal(deletions.given, 3);
}

/* Each of its pages leads to the same one. */
static void a_list_that_stands_still_is_no_list(void **state)
{
    static const char *const still[] = {
        "200 OK\n{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x\"},\"items\":[]}",
        "200 OK\n{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x\"},\"items\":[]}",
        LIST(POD("6", DONE)), NULL};
    static const char *const silent[] = {"200 OK\n", NULL};
    (void)state;
    lists.next = still;
    watches.next = silent;
    run();
    assert_int_equal(lists.given, 3);
    assert_null(strstr(list, "continue=")); /* from its beginning */
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_int_equal(reply.view.state, END_DONE);
}

/* As kubectl does; an error is reported as a whole sentence. */
static void a_member_that_the_kind_does_not_have_is_refused(void **state)
{
    (void)state;
    run_with((struct workload_run){.until = UNTIL_CREATED});
    assert_int_equal(reply.outcome, OUTCOME_OK);
    run_with((struct workload_run){.until = UNTIL_CREATED,
                                   .manifest = "{apiVersion: v1, kind: Pod, spec: {typo: 1}}"});
    assert_true(reply.usage);
    assert_non_null(strstr(reply.text, "unknown field \"spec.typo\""));
    const char *tail = reply.text + strlen(reply.text) - strlen(" field…");
    assert_string_equal(tail, " field…");
}

static void a_server_warning_is_reported_once(void **state)
{
    static const char *const warned[] = {
        "201 Created\r\nWarning: 299 - \"Pods are \\\"old\\\"\x1b[31m\xff \xc3\xa9\" "
        "\"date\"\n" POD("5", ""),
        "201 Created\r\nwarning: 299 - \"Pods are \\\"old\\\"\x1b[31m\xff \xc3\xa9\"\n" POD("5",
                                                                                            ""),
        "201 Created\r\nWarning: nonsense\r\nWarning: 299 - \"one\"\r\nWarning: 299 - \"two"
        "\n" POD("5", ""),
        NULL};
    (void)state;
    creations.next = warned;
    for (unsigned i = 0; i < 2; i++) {
        run_with((struct workload_run){.until = UNTIL_CREATED});
        assert_int_equal(reply.outcome, OUTCOME_OK);
        assert_int_equal(warnings, 1);
        assert_string_equal(warning, "Pods are \"old\"?[31m? \xc3\xa9");
    }
    run_with((struct workload_run){.until = UNTIL_CREATED});
    assert_int_equal(warnings, 3);
    assert_true(strncmp(warning, "two", 3) == 0);
}

static void an_observer_is_notified_every_second(void **state)
{
    static const char *const runs[] = {LIST(POD("6", "")), NULL};
    static const char *const silent[] = {
        "200 OK\n", "200 OK\n{\"type\":\"MODIFIED\",\"object\":" POD("8", DONE) "}\n", NULL};
    (void)state;
    lists.next = runs;
    watches.next = silent;
    workloads->watch_s = 2;
    run_with((struct workload_run){.progress = on_step});
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_true(steps >= 3); /* at once, and for two seconds and more */
}

static void that_there_was_nothing_to_remove_is_told(void **state)
{
    static const char *const gone[] = {"404 Not Found\n{\"reason\":\"NotFound\"}", NULL};
    (void)state;
    reads.next = gone;
    workloads_remove(workloads, "t", NULL, &reply);
    assert_int_equal(reply.outcome, OUTCOME_OK);
    assert_string_equal(reply.text, "there is no t; nothing was removed");
}

/* The precondition of a deletion is in its body; without one it would delete any object. */
static void a_change_without_words_is_not_asked_for(void **state)
{
    static const char *const methods[] = {"DELETE", "PUT", "POST", "PATCH"};
    struct json_result result;
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        kube_call(&workloads->kube, methods[i], "/x", /* body= */ NULL, &result);
        assert_string_equal(result.why, "out of memory");
    }
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_page_that_is_no_list_loses_nothing),
        STORY(where_no_api_server_answers_nothing_is_free),
        STORY(a_reply_that_is_no_object_says_why),
        STORY(a_request_permitted_once_asks_again),
        STORY(all_tries_together_end_with_the_timeout),
        STORY(a_watch_that_goes_silent_is_begun_anew),
        STORY(an_object_that_came_back_changed_is_removed_again),
        STORY(a_list_that_stands_still_is_no_list),
        STORY(a_member_that_the_kind_does_not_have_is_refused),
        STORY(a_server_warning_is_reported_once),
        STORY(an_observer_is_notified_every_second),
        STORY(that_there_was_nothing_to_remove_is_told),
        STORY(a_change_without_words_is_not_asked_for),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
