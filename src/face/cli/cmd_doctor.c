/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor: prints which program, configuration and store are used, then the library's
 * findings about them. It repairs nothing and takes no lock.
 */
#include "face/cli/cli.h"

#include "face/cli/observed.h"
#include "leasehold_admin.h"
#include "wire/duration.h"
#include "wire/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TODO_SIZE = 1024, EPOCH_TIMEOUT_MS = 3000, CLOCK_TOLERANCE_MS = 5000 };

struct doctor {
    struct context *context;
    unsigned problems;
    enum lh_finding_level worst; /* of all findings … */
    char todo[TODO_SIZE];        /* … and the remedy of the first one of that level */
};

static const char *const finding_names[] = {
    [LH_FINDING_OK] = "ok", [LH_FINDING_WARNING] = "warning", [LH_FINDING_PROBLEM] = "problem"};

static void doctor_on_finding(void *user, const struct lh_finding *finding)
{
    struct doctor *doctor = user;
    char line[LINE_SIZE];
    struct text text;
    doctor->problems += finding->level == LH_FINDING_PROBLEM;
    if (finding->level > doctor->worst) {
        doctor->worst = finding->level;
        if (finding->remedy != NULL)
            (void)snprintf(doctor->todo, sizeof doctor->todo, "%s (%s)", finding->remedy,
                           finding->text);
        else
            (void)snprintf(doctor->todo, sizeof doctor->todo, "%s", finding->text);
    }
    text_init(&text, line, sizeof line);
    if (doctor->context->settings.json) {
        json_begin(&text);
        json_add_string(&text, "finding", finding_names[finding->level]);
        json_add_string(&text, "about", finding->about);
        json_add_string(&text, "text", finding->text);
        json_add_string(&text, "do", finding->remedy);
        json_end(&text);
    } else {
        if (finding->level == LH_FINDING_OK && doctor->context->settings.quiet)
            return;
        text_add(&text, finding_names[finding->level]);
        text_add(&text, ": ");
        text_add(&text, finding->text);
        if (finding->remedy != NULL) {
            text_add(&text, "; ");
            text_add(&text, finding->remedy);
        }
    }
    output_line(&text, stdout);
}

static void doctor_report(struct doctor *doctor, enum lh_finding_level level, const char *about,
                          const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void doctor_report(struct doctor *doctor, enum lh_finding_level level, const char *about,
                          const char *remedy, const char *format, ...)
{
    char message[URL_SIZE + LH_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun one line above */
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct lh_finding finding = {.level = level, .about = about, .text = message, .remedy = remedy};
    doctor_on_finding(doctor, &finding);
}

static void doctor_check_program(struct doctor *doctor)
{
    char message[256];
    struct text text;
    text_init(&text, message, sizeof message);
    for (size_t i = 0; lh_store_scheme(i) != NULL; i++) {
        text_add(&text, i > 0 ? ", " : "");
        text_add(&text, lh_store_scheme(i));
    }
    doctor_report(doctor, LH_FINDING_OK, "version", NULL, "leasehold %s, with the stores %s",
                  lh_version(), message);
}

static void doctor_check_choice(struct doctor *doctor)
{
    const struct context *context = doctor->context;
    const char *config = context->settings.config;
    if (config != NULL)
        doctor_report(doctor, LH_FINDING_OK, "config", NULL, "the config file is %s", config);
    switch (context->store_from) {
    case FROM_FLAG:
        doctor_report(doctor, LH_FINDING_OK, "store", NULL, "the store is %s, named by --store",
                      context->shown);
        break;
    case FROM_ENVIRONMENT:
        doctor_report(doctor, LH_FINDING_OK, "store", NULL,
                      "the store is %s, named by LEASEHOLD_STORE", context->shown);
        break;
    case FROM_CONFIG:
        doctor_report(doctor, LH_FINDING_OK, "store", NULL, "the store is %s, named in %s",
                      context->shown, config);
        break;
    case FROM_DEFAULT:
        doctor_report(doctor, LH_FINDING_OK, "store", NULL, "the store is %s, the default of %s",
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
        doctor_report(doctor, LH_FINDING_WARNING, "default",
                      "name one store everywhere, with --store or LEASEHOLD_STORE", "%s", message);
    }
}

/* A store behind what this host has seen of it grants its tokens again. */
static bool doctor_is_behind(struct doctor *doctor, const struct lh_epoch *found,
                             const struct observed *seen)
{
    char span[DURATION_SHOWN];
    int64_t age_ms = wall_clock_ms() - seen->at_ms;
    bool known = found->revision != 0;
    bool older = found->epoch < seen->epoch ||
                 (known && found->epoch == seen->epoch && found->revision < seen->revision);
    bool early = found->now_ms >= 0 && seen->now_ms - found->now_ms > CLOCK_TOLERANCE_MS;
    if (older)
        doctor_report(doctor, LH_FINDING_WARNING, "restored",
                      "end all users of the store, then call leasehold epoch raise",
                      "the store looks restored from a backup: it is at revision %" PRIu64
                      " of epoch %u, and this host saw revision %" PRIu64 " of epoch %" PRIu64
                      " %s ago; tokens may be granted again",
                      found->revision, (unsigned)found->epoch, seen->revision, seen->epoch,
                      duration_show(age_ms > 0 ? age_ms : 0, span));
    if (early)
        doctor_report(doctor, LH_FINDING_WARNING, "restored",
                      "put the clock right; after a restored backup call leasehold epoch raise",
                      "the store's clock is %s behind the one that this host saw",
                      duration_show(seen->now_ms - found->now_ms, span));
    return older || early;
}

static void doctor_check_epoch(struct doctor *doctor)
{
    const struct context *context = doctor->context;
    struct lh_epoch found = LH_EPOCH_INIT;
    struct observed seen;
    struct lh_report report = LH_REPORT_INIT;
    enum lh_outcome outcome = lh_epoch_read(context->url, EPOCH_TIMEOUT_MS, &found, &report);
    if (outcome == LH_USAGE)
        return; /* memory: has none */
    if (outcome != LH_OK) {
        doctor_report(doctor, LH_FINDING_PROBLEM, "epoch", "call leasehold epoch for the reason",
                      "the epoch of tokens cannot be read: %s", report.text);
        return;
    }
    if (found.behind > 0)
        doctor_report(doctor, LH_FINDING_WARNING, "epoch", "call leasehold epoch raise",
                      "%u parts of the store have an older epoch than %u", (unsigned)found.behind,
                      (unsigned)found.epoch);
    bool known = observed_find(context, &found, &seen);
    if (known && doctor_is_behind(doctor, &found, &seen))
        return; /* until the epoch is raised */
    doctor_report(doctor, LH_FINDING_OK, "epoch", NULL, "the epoch of tokens is %u%s",
                  (unsigned)found.epoch,
                  known ? ", and the store is not behind what this host saw" : "");
    observed_keep(context, &found);
}

/* The last line: what to do first. A warning without a problem leaves the store usable. */
static void doctor_conclude(const struct doctor *doctor)
{
    char line[LINE_SIZE];
    struct text text;
    if (doctor->context->settings.json || doctor->context->settings.quiet)
        return;
    text_init(&text, line, sizeof line);
    text_add(&text, doctor->worst == LH_FINDING_OK        ? "all is well"
                    : doctor->worst == LH_FINDING_WARNING ? "locks work; to do first: "
                                                          : "to do first: ");
    text_add(&text, doctor->todo);
    output_line(&text, stdout);
}

static int cmd_doctor(struct context *context)
{
    struct doctor doctor = {.context = context};
    struct lh_diagnose_options options = LH_DIAGNOSE_OPTIONS_INIT;
    int status = context_find_store(context);
    if (status != EXIT_DONE)
        return status;
    doctor_check_program(&doctor);
    doctor_check_choice(&doctor);
    options.kind = context->settings.kind;
    options.creates_folder = context->store_from == FROM_DEFAULT;
    enum lh_outcome outcome =
        lh_diagnose(context->url, &options, doctor_on_finding, &doctor, /* report= */ NULL);
    if (outcome == LH_OK && doctor.problems == 0)
        doctor_check_epoch(&doctor);
    if (outcome == LH_OK)
        doctor_check_other_default(&doctor);
    doctor_conclude(&doctor);
    if (outcome != LH_OK) /* no store has this scheme */
        return outcome_exit_status(outcome);
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
    .about =
        "Checks everything that locks depend on: which store is used and which setting "
        "selected it, the permissions and file system of its directory, free space, the "
        "clock, a second default store, damage, processes that block the store, and whether the "
        "store is behind what doctor or epoch last saw of it from this host, as after a "
        "restored backup. For a "
        "Redis server it checks settings that weaken locks; for a Kubernetes cluster the "
        "identity, its permissions and unused objects. Each finding is one line that begins "
        "with ok, warning or problem; a problem includes a remedy. The last line is \"all is "
        "well\", or the first thing to do. doctor repairs nothing, "
        "acquires no lock, and does not create a missing store.\n\n"
        "The status is 0 if there is no problem, and 69 if the store cannot be used. With "
        "--quiet only warnings and problems are printed.",
    .example = "  leasehold doctor\n"
               "  leasehold --store file:/srv/locks.log doctor --json",
    .options = doctor_options,
    .run = cmd_doctor,
};
