/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of another release: compiled against a shortened or lengthened copy of the headers
 * (tests/e2e/header.sh), it runs with the library as it is. With SHORTER structs lack their last
 * member, with LONGER they have a further one, `added`. Prints a line for each expectation that
 * fails.
 */
#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <stdio.h>
#include <string.h>

enum { GUARD_BYTES = 64, GUARD = 0xa5 };

static int failures;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("not so: %s\n", what);
        failures++;
    }
}

/* A result, and bytes behind it that the library must not touch. */
#define GUARDED(type)                     \
    struct {                              \
        type result;                      \
        unsigned char guard[GUARD_BYTES]; \
    }

static bool is_intact(const unsigned char *guard)
{
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != GUARD)
            return false;
    return true;
}

static void use_ids(struct lh_client *client)
{
    GUARDED(struct lh_once) once = {.result = LH_ONCE_INIT};
    GUARDED(struct lh_watermark) watermark = {.result = LH_WATERMARK_INIT};
    struct lh_completion completion = LH_COMPLETION_INIT;
    memset(once.guard, GUARD, sizeof once.guard);
    memset(watermark.guard, GUARD, sizeof watermark.guard);
    completion.status = 3;
    expect(lh_once_begin(client, "id", NULL, &once.result, NULL) == LH_OK, "an id is claimed");
    expect(once.result.token != 0, "the claim has a token");
    expect(lh_once_finish(client, "id", once.result.token, &completion, NULL) == LH_OK,
           "the id is finished");
    expect(lh_once_status(client, "id", &once.result, NULL) == LH_DONE && once.result.status == 3,
           "the id is done");
    expect(lh_watermark_begin(client, "w", 1, &watermark.result, NULL) == LH_OK,
           "a watermark begins");
    expect(is_intact(once.guard) && is_intact(watermark.guard), "results of ids keep their size");
}

static void use_lock(struct lh_client *client)
{
    GUARDED(struct lh_report) report = {.result = LH_REPORT_INIT};
    GUARDED(struct lh_view) view = {.result = LH_VIEW_INIT};
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL, *second = NULL;
    memset(report.guard, GUARD, sizeof report.guard);
    memset(view.guard, GUARD, sizeof view.guard);
    options.ttl_ms = 20000;
    expect(lh_acquire(client, "k", &options, &lease, &report.result) == LH_OK &&
               report.result.outcome == LH_OK && report.result.token == lh_token(lease),
           "a lock is granted, with its token in the report");
    expect(lh_acquire(client, "k", NULL, &second, &report.result) == LH_BUSY &&
               report.result.outcome == LH_BUSY && second == NULL,
           "a second caller finds it busy");
    expect(lh_status(client, "k", &view.result, &report.result) == LH_OK &&
               view.result.state == LH_HELD && view.result.holders == 1 &&
               view.result.token == lh_token(lease),
           "the status shows the holder");
    expect(lh_release(&lease, &report.result) == LH_OK, "the lock is released");
    options.size = 1;
    expect(lh_acquire(client, "k", &options, &lease, &report.result) == LH_USAGE &&
               report.result.outcome == LH_USAGE && lease == NULL,
           "an implausible size is refused");
    expect(is_intact(report.guard) && is_intact(view.guard), "report and view keep their size");
#ifdef LONGER
    options = (struct lh_acquire_options)LH_ACQUIRE_OPTIONS_INIT;
    options.added = 1;
    report.result.added = 77;
    expect(lh_acquire(client, "k", &options, &lease, &report.result) == LH_USAGE && lease == NULL,
           "an unknown option that is set is refused");
    options.added = 0;
    expect(lh_acquire(client, "k", &options, &lease, &report.result) == LH_OK &&
               lh_release(&lease, NULL) == LH_OK,
           "an unknown option that is not set is accepted");
    expect(report.result.added == 77, "an unknown member of a report is left alone");
#endif
}

/* A callback receives the struct of the library, whose size states which members are there. */
#ifdef LONGER
#define EXPECT_SIZE(given, what) expect((given)->size < sizeof *(given), what)
#elif defined SHORTER
#define EXPECT_SIZE(given, what) expect((given)->size > sizeof *(given), what)
#else
#define EXPECT_SIZE(given, what) expect((given)->size == sizeof *(given), what)
#endif

static unsigned views, grants, findings;

static bool on_view(void *user, const struct lh_view *view)
{
    (void)user;
    views++;
    EXPECT_SIZE(view, "a view in a callback has the size of the library");
    expect(view->state == LH_HELD && view->token != 0 && strcmp(view->holder, "abi") == 0,
           "a view in a callback shows the holder");
    return true;
}

static void on_event(void *user, const struct lh_event *event)
{
    unsigned *counted = user;
    EXPECT_SIZE(event, "an event has the size of the library");
    if (event->kind == LH_EVENT_GRANTED && strcmp(event->key, "k") == 0 && event->token != 0)
        (*counted)++;
}

static void on_finding(void *user, const struct lh_finding *finding)
{
    (void)user;
    findings++;
    EXPECT_SIZE(finding, "a finding has the size of the library");
    expect(finding->about[0] != '\0' && finding->text[0] != '\0', "a finding has a text");
}

static void use_callbacks(struct lh_client *client, const char *url)
{
    struct lh_lease *lease = NULL;
    unsigned before = grants;
    expect(lh_acquire(client, "k", NULL, &lease, NULL) == LH_OK, "a lock is granted again");
    expect(lh_status_details(client, "k", on_view, NULL, NULL) == LH_OK && views == 1,
           "the details of a status come in a callback");
    expect(lh_list(client, "", on_view, NULL, NULL) == LH_OK && views > 1, "so does a list");
    expect(lh_release(&lease, NULL) == LH_OK, "the lock is released again");
    expect(lh_diagnose(url, NULL, on_finding, NULL, NULL) == LH_OK && findings > 0,
           "the store is diagnosed");
    expect(grants == before + 1, "a grant is an event");
}

int main(int count, char **arguments)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    const char *url = count > 1 ? arguments[1] : "memory:";
    options.holder = "abi";
    options.on_event = on_event;
    options.user = &grants;
    expect(lh_open(url, &options, &client, NULL) == LH_OK, "the store opens");
    if (client == NULL)
        return 1;
    use_lock(client);
    use_callbacks(client, url);
    use_ids(client);
    lh_close(&client);
    return failures == 0 ? 0 : 1;
}
