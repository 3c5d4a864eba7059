/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor: reports which store is used, which setting selected it, and its problems. It
 * repairs nothing, creates nothing and acquires no lock.
 */
#include "face/cli/doctor.h"

#include "process/host.h"
#include "store/store.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RIGHTS_TIMEOUT_MS = 3000 };

static const char *const finding_names[] = {
    [FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_PROBLEM] = "problem"};

void doctor_report(struct doctor *doctor, enum finding finding, const char *about,
                   const char *remedy, const char *format, ...)
{
    char message[URL_SIZE + LH_TEXT_SIZE], line[LINE_SIZE];
    struct text text;
    va_list arguments;
    doctor->problems += finding == FINDING_PROBLEM;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    text_init(&text, line, sizeof line);
    if (doctor->context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "finding", finding_names[finding]);
        json_add_string(&text, "about", about);
        json_add_string(&text, "text", message);
        json_add_string(&text, "do", remedy);
        json_end(&text);
    } else {
        if (finding == FINDING_OK && doctor->context->settings.quiet)
            return;
        text_add(&text, finding_names[finding]);
        text_add(&text, ": ");
        text_add(&text, message);
        if (remedy != NULL) {
            text_add(&text, "; ");
            text_add(&text, remedy);
        }
    }
    output_line(&text, stdout);
}

static void doctor_check_program(struct doctor *doctor)
{
    char message[256];
    struct text text;
    text_init(&text, message, sizeof message);
    for (size_t i = 0; store_scheme(i) != NULL; i++) {
        text_add(&text, i > 0 ? ", " : "");
        text_add(&text, store_scheme(i));
    }
    doctor_report(doctor, FINDING_OK, "version", NULL, "leasehold %s, with the stores %s",
                  lh_version(), message);
}

static void doctor_check_choice(struct doctor *doctor)
{
    const struct context *context = doctor->context;
    const char *config = context->settings.config;
    if (config != NULL)
        doctor_report(doctor, FINDING_OK, "config", NULL, "the config file is %s", config);
    switch (context->store_from) {
    case FROM_FLAG:
        doctor_report(doctor, FINDING_OK, "store", NULL, "the store is %s, named by --store",
                      context->shown);
        break;
    case FROM_ENVIRONMENT:
        doctor_report(doctor, FINDING_OK, "store", NULL,
                      "the store is %s, named by LEASEHOLD_STORE", context->shown);
        break;
    case FROM_CONFIG:
        doctor_report(doctor, FINDING_OK, "store", NULL, "the store is %s, named in %s",
                      context->shown, config);
        break;
    case FROM_DEFAULT:
        doctor_report(doctor, FINDING_OK, "store", NULL, "the store is %s, the default of %s",
                      context->shown, geteuid() == 0 ? "root" : "users other than root");
        break;
    }
}

/* Root and other users have different default stores, and do not share locks by default. */
static void doctor_check_other_default(struct doctor *doctor)
{
    struct default_store stores[DEFAULT_STORES];
    const char *used = context_store_path(doctor->context);
    size_t count = default_stores(stores);
    bool matters = doctor->context->store_from == FROM_DEFAULT || count > 1;
    for (size_t i = 0; i < count && matters; i++) {
        char message[LINE_SIZE];
        struct text text;
        if (used != NULL && strcmp(used, stores[i].path) == 0)
            continue;
        text_init(&text, message, sizeof message);
        default_store_describe(&stores[i], &text);
        doctor_report(doctor, FINDING_WARNING, "default",
                      "name one store everywhere, with --store or LEASEHOLD_STORE", "%s", message);
    }
}

static int64_t raw_boot_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void doctor_check_clock(struct doctor *doctor)
{
    static const unsigned char none[HOST_ID];
    char message[LH_TEXT_SIZE], up[DURATION_SHOWN], ahead[DURATION_SHOWN];
    struct host_ids ids;
    struct text why;
    text_init(&why, message, sizeof message);
    if (!host_read(&ids, &why)) {
        doctor_report(doctor, FINDING_PROBLEM, "clock", NULL, "%s", message);
        return;
    }
    int64_t boot_ms = host_boot_ms(), ahead_ms = raw_boot_ms() - boot_ms;
    bool in_namespace = ahead_ms > 500 || ahead_ms < -500;
    doctor_report(doctor, FINDING_OK, "clock", NULL, "the host's clock is %s from its boot%s%s%s",
                  duration_show(boot_ms, up), in_namespace ? "; this is a time namespace, " : "",
                  in_namespace ? duration_show(ahead_ms < 0 ? -ahead_ms : ahead_ms, ahead) : "",
                  !in_namespace  ? ""
                  : ahead_ms > 0 ? " ahead, which is corrected"
                                 : " behind, which is corrected");
    if (memcmp(ids.machine, none, sizeof none) == 0)
        doctor_report(doctor, FINDING_WARNING, "clock", "create one with systemd-machine-id-setup",
                      "this host has no machine id: after a reboot it counts as another host, and "
                      "its earlier leases last until their TTL ends");
}

/* Every command needs at least to read a key. */
void doctor_check_rights(struct doctor *doctor, const char *remedy)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report;
    struct lh_view view;
    options.timeout_ms = RIGHTS_TIMEOUT_MS;
    enum lh_outcome outcome = lh_open(doctor->context->url, &options, &client, &report);
    if (outcome == LH_OK)
        outcome = lh_status(client, "leasehold doctor", &view, &report);
    if (outcome == LH_OK)
        doctor_report(doctor, FINDING_OK, "rights", NULL, "the user may read locks");
    else
        doctor_report(doctor, FINDING_PROBLEM, "rights", outcome == LH_DENIED ? remedy : NULL, "%s",
                      report.text);
    lh_close(&client);
}

static void doctor_check_store(struct doctor *doctor)
{
    const struct context *context = doctor->context;
    const char *path = context_store_path(context);
    if (path != NULL)
        doctor_check_file(doctor, path);
#ifndef LH_WITHOUT_REDIS
    else if (strncmp(context->url, "redis", strlen("redis")) == 0)
        doctor_check_redis(doctor, context->url);
#endif
#ifndef LH_WITHOUT_KUBERNETES
    else if (strncmp(context->url, "k8s", strlen("k8s")) == 0)
        doctor_check_k8s(doctor, context->url);
#endif
    else
        doctor_report(doctor, FINDING_WARNING, "store", "name a file: store to share locks",
                      "%s is private to each process and is lost when it exits", context->shown);
}

static int cmd_doctor(struct context *context)
{
    struct doctor doctor = {.context = context};
    int status = context_find_store(context);
    if (status != EXIT_DONE)
        return status;
    doctor_check_program(&doctor);
    doctor_check_choice(&doctor);
    doctor_check_clock(&doctor);
    if (store_find(context->url) == NULL) {
        char message[LH_TEXT_SIZE];
        struct text text;
        text_init(&text, message, sizeof message);
        store_describe_unknown(context->url, &text);
        doctor_report(&doctor, FINDING_PROBLEM, "store", NULL, "%s", message);
        return store_is_planned(context->url) ? EXIT_UNAVAILABLE : EXIT_USAGE;
    }
    doctor_check_store(&doctor);
    doctor_check_other_default(&doctor);
    return doctor.problems > 0 ? EXIT_UNAVAILABLE : EXIT_DONE;
}

static const struct option option_kind = {
    .name = "kind",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, kind),
    .value = "KIND",
    .flag_only = true,
    .help = "also check whether k8s-run may use objects of this kind, as in jobs.batch"};
static const struct option *const doctor_options[] = {&option_kind, NULL};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check the store, permissions and clock, and explain problems",
    .about = "Checks everything that locks depend on: which store is used and which setting "
             "selected it, the permissions and file system of its directory, free space, the "
             "clock, a second default store, damage, and processes that block the store. For a "
             "Redis server it checks settings that weaken locks; for a Kubernetes cluster the "
             "identity, its permissions and unused objects. Each finding is one line that begins "
             "with ok, warning or problem; a problem includes a remedy. doctor repairs nothing, "
             "acquires no lock, and does not create a missing store.\n\n"
             "The status is 0 if there is no problem, and 69 if the store cannot be used. With "
             "--quiet only warnings and problems are printed.",
    .example = "  leasehold doctor\n"
               "  leasehold --store file:/srv/locks.log doctor --json",
    .options = doctor_options,
    .run = cmd_doctor,
};
