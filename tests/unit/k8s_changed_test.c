/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes driver with an API server, or a webhook behind it, that replies as no good one
 * does: objects that were changed, lists without an end, invalid keys.
 */
#include "k8s_kit.h"

#include "wire/record_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOTE(name, value) "{\"metadata\":{\"annotations\":{\"leasehold/" name "\":" value "}}}"

/* The reply to the read of the epoch, before the first grant. */
#define NO_EPOCH "404 Not Found\n{\"details\":{\"kind\":\"leases\"}}"

/* An admission webhook changes the object, and the server replies 201. */
static void a_lease_that_came_back_changed_is_removed_again(void **state)
{
    static const struct {
        const char *change, *named;
    } cases[] = {
        {"echo 5\n" NOTE("record", "\"\""), "leasehold/record"},
        {"echo 5\n" NOTE("record", "null"), "leasehold/record"},
        {"echo 5\n" NOTE("record", "\"{\\\"leasehold\\\"\""), "leasehold/record"},
        {"echo 5\n" NOTE("key", "\"other\""), "leasehold/key"},
        {"echo 5\n" NOTE("shown", "7"), "leasehold/shown"},
        {"echo 5\n" NOTE("write", "\"\""), "leasehold/write"},
        {"echo 5\n{\"metadata\":{\"annotations\":null}}", "leasehold/key"},
        {"echo 5\n{\"spec\":{\"holderIdentity\":\"webhook\"}}", "holderIdentity"},
        {"echo 5\n{\"spec\":{\"leaseDurationSeconds\":3600}}", "leaseDurationSeconds"},
        {"echo 5\n{\"spec\":null}", "holderIdentity"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const answers[] = {NO_EPOCH, cases[i].change, "200 OK\n{}", NULL};
        struct asked asked = {0};
        k8s_kit_begin(answers);
        k8s_kit_grant_key(&asked, /* revision= */ 0);
        assert_true(k8s_kit_until(&asked.done, 1));
        assert_int_equal(asked.last.result, REPLY_TROUBLE);
        assert_non_null(strstr(asked.why, "came back changed"));
        assert_non_null(strstr(asked.why, cases[i].named));
        assert_non_null(strstr(asked.why, "it was removed"));
        answers_expect(2, "DELETE /apis/coordination.k8s.io/v1/namespaces/blue/leases/k ");
        answers_expect(2, "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"5\"}");
        k8s_kit_end();
    }
}

/* The result of a write over revision 5, with these replies: the read, the write, the removal. */
static void expect_undone(const char *const *answers, bool grants, const char *why,
                          const char *removal)
{
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_REVISION, .revision = 5},
                                    .bytes = "x",
                                    .length = 1};
    const char *const granting[] = {answers[0], NO_EPOCH, answers[1], answers[2], NULL};
    struct asked asked = {0};
    k8s_kit_begin(grants ? granting : answers);
    if (grants)
        k8s_kit_grant_key(&asked, /* revision= */ 5);
    else
        k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_non_null(strstr(asked.why, why));
    size_t last = grants ? 3 : 2;
    assert_int_equal(answers_heard(), removal != NULL ? last + 1 : last);
    if (removal != NULL) {
        answers_expect(last, removal);
        answers_expect(last, "\"resourceVersion\":\"6\"");
    }
    k8s_kit_end();
}

/* Only unreferenced objects are removed; one that was changed since stays, by the precondition. */
static void a_change_that_came_back_changed_is_undone_if_it_can_be(void **state)
{
#define EMPTIED "echo 6\n" NOTE("record", "\"\"")
    static const char *const theirs[] = {"200 OK\n" LEASE("5"), EMPTIED, "200 OK\n{}", NULL};
    static const char *const ours[] = {"200 OK\n" OURS("5"), EMPTIED, "200 OK\n{}", NULL};
    static const char *const taken[] = {"200 OK\n" OURS("5"), EMPTIED, "409 Conflict\n{}", NULL};
    static const char *const cut[] = {"200 OK\n" OURS("5"), EMPTIED, "", NULL};
    static const char *const back[] = {"200 OK\n" OURS("5"), "echo 5\n{}", NULL};
    static const char *const other[] = {"200 OK\n" OURS("5"),
                                        "echo 6\n{\"metadata\":{\"name\":\"other\"}}", NULL};
    (void)state;
    expect_undone(theirs, /* grants= */ true, "it was removed", "PUT ");
    expect_undone(ours, /* grants= */ true, "it was removed", "DELETE ");
    expect_undone(taken, /* grants= */ true, "it was left there", "DELETE ");
    expect_undone(cut, /* grants= */ true, "it was left there", "DELETE ");
    expect_undone(ours, /* grants= */ false, "it was left there", NULL);
    expect_undone(back, /* grants= */ false, "changed in resourceVersion", NULL);
    expect_undone(other, /* grants= */ true, "is about another Lease", NULL);
}

static bool is_endless; /* each page names another one */
static unsigned pages_asked;

static bool say_page(int file, const char *request)
{
    char body[256], said[512];
    unsigned page = is_endless ? ++pages_asked : 7;
    (void)request;
    (void)snprintf(body, sizeof body, "{\"metadata\":{\"continue\":\"p%u\"},\"items\":[]}", page);
    (void)snprintf(said, sizeof said,
                   "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
    http_kit_say(file, said);
    return true;
}

/* A list that never ends, repeats a page, or continues nowhere. */
static void an_endless_list_ends(void **state)
{
    static const char *const nowhere[] = {
        "200 OK\n{\"metadata\":{\"continue\":\"a b\\n\"},\"items\":[]}", NULL};
    struct store_request request = {.verb = VERB_STORE_LIST, .key = ""};
    (void)state;
    k8s_kit_begin(nowhere);
    struct asked asked = {0};
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_int_equal(asked.last.result, REPLY_TROUBLE);
    assert_int_equal(answers_heard(), 1);
    answers_say_by(say_page);
    for (unsigned i = 0; i < 2; i++) {
        is_endless = i > 0;
        k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
        assert_true(k8s_kit_until(&asked.done, 2 + i));
        assert_int_equal(asked.last.result, REPLY_TROUBLE);
        assert_non_null(strstr(asked.why, is_endless ? "too long" : "continue token"));
    }
    assert_int_equal(pages_asked, JSON_PAGES_MAX);
}

static void on_collected(void *owner, const struct collection *tally)
{
    struct asked *asked = owner;
    asked->done++;
    (void)snprintf(asked->why, sizeof asked->why, "%s", tally->why);
}

static void an_endless_list_ends_a_collection(void **state)
{
    static const char *const none[] = {NULL};
    struct asked asked = {0};
    (void)state;
    k8s_kit_begin_at("k8s://blue?collect=off", none);
    answers_say_by(say_page);
    is_endless = true;
    pages_asked = 0;
    collector_begin(&((struct k8s *)k8s_kit_store)->collector, /* rate= */ 0, on_collected, &asked);
    assert_true(k8s_kit_until(&asked.done, 1));
    assert_non_null(strstr(asked.why, "too long"));
    assert_int_equal(pages_asked, JSON_PAGES_MAX);
}

/* A Lease was annotated with a key that is invalid, under the name that it has. */
static void a_key_that_is_none_is_not_told(void **state)
{
    char keys[3][600] = {"", "\\u0001a"}, names[3][K8S_NAME_MAX + 1], events[3][2048];
    static const char *const meant[] = {"", "\001a"};
    const struct k8s_url url = {.names = K8S_NAMES_AUTO};
    struct store_request request = {.verb = VERB_STORE_WATCH, .key = ""};
    struct asked asked = {0};
    (void)state;
    memset(keys[2], 'k', 513);
    keys[2][513] = '\0';
    for (size_t i = 0; i < 3; i++) {
        assert_true(k8s_name_of(&url, i < 2 ? meant[i] : keys[i], names[i]));
        (void)snprintf(events[i], sizeof events[i],
                       "watch\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"%s\","
                       "\"uid\":\"u\",\"resourceVersion\":\"%zu\",\"annotations\":{"
                       "\"leasehold/key\":\"%s\"}},\"spec\":{\"holderIdentity\":\"x\"}}}\n",
                       names[i], 6 + i, keys[i]);
    }
    const char *const answers[] = {"200 OK\n{\"metadata\":{\"resourceVersion\":\"5\"}}",
                                   events[0],
                                   events[1],
                                   events[2],
                                   "watch\n" EVENT("ADDED", "9"),
                                   NULL};
    k8s_kit_begin(answers);
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, &asked);
    assert_true(k8s_kit_until(&asked.done, 2)); /* the current object, and the last one */
    assert_string_equal(asked.key, "k");
    assert_int_equal(asked.last.written.revision, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_lease_that_came_back_changed_is_removed_again),
        STORY(a_change_that_came_back_changed_is_undone_if_it_can_be),
        STORY(an_endless_list_ends),
        STORY(an_endless_list_ends_a_collection),
        STORY(a_key_that_is_none_is_not_told),
    };
    (void)unsetenv("http_proxy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
