/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lh_diagnose(): examines the host's clock here and the store through its driver, and passes the
 * findings on. Decides nothing and repairs nothing.
 */
#include "face/lib/admin_internal.h"

#include "process/host.h"
#include "wire/duration.h"

#include <string.h>
#include <time.h>

enum { READ_TIMEOUT_MS = 3000, NAMESPACE_MIN_MS = 500 };

/* The owner of a diagnosis. */
struct diagnosis_caller {
    lh_finding_fn *fn;
    void *user;
};

_Static_assert((int)LH_FINDING_WARNING == (int)FINDING_WARNING &&
                   (int)LH_FINDING_PROBLEM == (int)FINDING_PROBLEM,
               "the levels are the same");

static void diagnose_on_finding(const struct diagnosis *diagnosis, const struct finding *finding)
{
    const struct diagnosis_caller *caller = diagnosis->owner;
    struct lh_finding shown = {.size = sizeof shown,
                               .level = (enum lh_finding_level)finding->level,
                               .about = finding->about,
                               .text = finding->text,
                               .remedy = finding->remedy};
    caller->fn(caller->user, &shown);
}

/* Every command needs to read a key. */
static void diagnose_read(const struct diagnosis *diagnosis, const char *url, const char *remedy)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_view view = LH_VIEW_INIT;
    options.timeout_ms = diagnosis_timeout_ms(diagnosis, READ_TIMEOUT_MS);
    enum lh_outcome outcome = lh_open(url, &options, &client, &report);
    if (outcome == LH_OK)
        outcome = lh_status(client, "leasehold doctor", &view, &report);
    if (outcome == LH_OK)
        diagnosis_report(diagnosis, FINDING_OK, "rights", NULL, "the user may read locks");
    else
        diagnosis_report(diagnosis, FINDING_PROBLEM, "rights", outcome == LH_DENIED ? remedy : NULL,
                         "%s", report.text);
    lh_close(&client);
}

/* CLOCK_BOOTTIME with the offset of our time namespace, which host_boot_ms() takes off. */
static int64_t namespace_boot_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void diagnose_clock(const struct diagnosis *diagnosis)
{
    static const unsigned char none[HOST_ID];
    char message[LH_TEXT_SIZE], up[DURATION_SHOWN], ahead[DURATION_SHOWN];
    struct host_ids ids;
    struct text why;
    text_init(&why, message, sizeof message);
    if (!host_read(&ids, &why)) {
        diagnosis_report(diagnosis, FINDING_PROBLEM, "clock", NULL, "%s", message);
        return;
    }
    int64_t boot_ms = host_boot_ms(), ahead_ms = namespace_boot_ms() - boot_ms;
    bool in_namespace = ahead_ms > NAMESPACE_MIN_MS || ahead_ms < -NAMESPACE_MIN_MS;
    diagnosis_report(diagnosis, FINDING_OK, "clock", NULL,
                     "the host's clock is %s from its boot%s%s%s", duration_show(boot_ms, up),
                     in_namespace ? "; this is a time namespace, " : "",
                     in_namespace ? duration_show(ahead_ms < 0 ? -ahead_ms : ahead_ms, ahead) : "",
                     !in_namespace  ? ""
                     : ahead_ms > 0 ? " ahead, which is corrected"
                                    : " behind, which is corrected");
    if (memcmp(ids.machine, none, sizeof none) == 0)
        diagnosis_report(diagnosis, FINDING_WARNING, "clock",
                         "create one with systemd-machine-id-setup",
                         "this host has no machine id: after a reboot it counts as another host, "
                         "and its earlier leases last until their TTL ends");
}

static void diagnose_scheme(const char *url, const struct diagnosis *diagnosis)
{
    char message[LH_TEXT_SIZE];
    struct text text;
    text_init(&text, message, sizeof message);
    store_describe_unknown(url, &text);
    diagnosis_report(diagnosis, FINDING_PROBLEM, "store", NULL, "%s", message);
}

enum lh_outcome lh_diagnose(const char *url, const struct lh_diagnose_options *options,
                            lh_finding_fn *fn, void *user, struct lh_report *report)
{
    struct lh_diagnose_options known = LH_DIAGNOSE_OPTIONS_INIT;
    struct diagnosis_caller caller = {.fn = fn, .user = user};
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (url == NULL || fn == NULL ||
        (options != NULL && !sized_read(&known, sizeof known, options)) || known.timeout_ms < 0)
        return admin_report(report, LH_USAGE,
                            "lh_diagnose() needs a URL, a function for findings, and options that "
                            "LH_DIAGNOSE_OPTIONS_INIT sets");
    const struct store_driver *driver = store_find(url);
    const struct diagnosis diagnosis = {.kind = known.kind,
                                        .timeout_ms = known.timeout_ms,
                                        .creates_folder = known.creates_folder,
                                        .events_only = known.events_only,
                                        .on_finding = diagnose_on_finding,
                                        .check_read = diagnose_read,
                                        .collect_objects = admin_collect_objects,
                                        .owner = &caller};
    if (!known.events_only)
        diagnose_clock(&diagnosis);
    if (driver == NULL) {
        diagnose_scheme(url, &diagnosis);
        return admin_report_scheme(url, report);
    }
    if (!known.events_only || driver->event != NULL)
        driver->diagnose(url, &diagnosis);
    return report_set(report, LH_OK, "");
}
