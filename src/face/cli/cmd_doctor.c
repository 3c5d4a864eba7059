/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold doctor: prints which program, configuration and store are used, then the library's
 * findings about them. It repairs nothing and takes no lock.
 */
#include "face/cli/cli.h"

#include "leasehold_admin.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TODO_SIZE = 1024 };

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
    .about = "Checks everything that locks depend on: which store is used and which setting "
             "selected it, the permissions and file system of its directory, free space, the "
             "clock, a second default store, damage, and processes that block the store. For a "
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
