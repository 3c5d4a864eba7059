/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects and opens the store, and determines the holder name. The default store is a file in the
 * state directory of the user, which is created with mode 0700 if it is missing.
 */
#include "face/cli/cli.h"

#include "face/cli/metrics_file.h"
#include "run/child.h"
#include "wire/duration.h"
#include "wire/url_redact.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool default_store_path(bool root, char *out, size_t size)
{
    static const char name[] = "leasehold/locks.log";
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;
    if (root)
        length = snprintf(out, size, "/var/lib/%s", name);
    else if (state != NULL && state[0] == '/')
        length = snprintf(out, size, "%s/%s", state, name);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, size, "%s/.local/state/%s", home, name);
    else
        return false;
    return length > 0 && (size_t)length < size;
}

/* The store of the user who called sudo. HOME may be that of root, so it reads the passwd entry. */
static bool sudo_store_path(char *out, size_t size)
{
    const char *value = getenv("SUDO_UID");
    char *end = NULL;
    unsigned long user = value != NULL ? strtoul(value, &end, /* base= */ 10) : 0;
    if (geteuid() != 0 || user == 0 || user > UINT32_MAX || *end != '\0')
        return false;
    char entry_buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r((uid_t)user, &entry, entry_buffer, sizeof entry_buffer, &found) != 0 ||
        found == NULL || entry.pw_dir[0] != '/')
        return false;
    int length = snprintf(out, size, "%s/.local/state/leasehold/locks.log", entry.pw_dir);
    return length > 0 && (size_t)length < size;
}

size_t default_stores(struct default_store out[DEFAULT_STORES])
{
    static const char *const users[] = {"users other than root use", "root uses",
                                        "the user who called sudo uses"};
    size_t count = 0;
    for (int i = 0; i < DEFAULT_STORES; i++) {
        struct default_store *store = &out[count];
        bool named = i < 2 ? default_store_path(i == 1, store->path, sizeof store->path)
                           : sudo_store_path(store->path, sizeof store->path);
        if (!named || (count > 0 && strcmp(out[0].path, store->path) == 0))
            continue;
        bool there = access(store->path, F_OK) == 0;
        store->hidden = !there && (errno == EACCES || errno == EPERM);
        store->users = users[i];
        count += there || store->hidden;
    }
    return count;
}

void default_store_describe(const struct default_store *other, struct text *out)
{
    text_add(out, other->hidden ? "there may be another default store, "
                                : "there is another default store, ");
    text_add(out, other->path);
    text_add(out, ", which ");
    text_add(out, other->users);
    text_add(out, " without --store; its locks are not visible here");
    if (other->hidden)
        text_add(out, " (permission denied)");
}

void context_warn_other_stores(const struct context *context)
{
    struct default_store stores[DEFAULT_STORES];
    const struct settings *settings = &context->settings;
    bool interactive = !settings->quiet && !settings->json && isatty(STDERR_FILENO) == 1;
    if (context->store_from != FROM_DEFAULT || !(interactive || settings->verbose))
        return;
    size_t count = default_stores(stores);
    for (size_t i = 0; i < count; i++) {
        char line[LINE_SIZE];
        struct text text;
        if (strcmp(stores[i].path, context_store_path(context)) == 0)
            continue;
        text_init(&text, line, sizeof line);
        default_store_describe(&stores[i], &text);
        if (settings->verbose)
            output_detail(context, "%s", line);
        else
            (void)fprintf(stderr, "leasehold: %s\n", line);
        return;
    }
}

/* Creates the directory of the file, with its parents. Usually it exists. */
static bool make_folder(const char *file)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", file);
    char *last = strrchr(path, '/');
    *last = '\0';
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return true;
    if (errno != ENOENT)
        return false;
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static const char *file_path(const char *url)
{
    static const char scheme[] = "file:";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return NULL;
    const char *path = url + sizeof scheme - 1;
    return strncmp(path, "//", 2) == 0 ? path + 2 : path;
}

/* Makes a relative path absolute, since the command may change its directory. False if it is too
 * long. */
static bool store_url_absolute(const char *store, char *out, size_t size)
{
    char folder[PATH_MAX];
    const char *path = file_path(store);
    bool relative = path != NULL && path[0] != '\0' && path[0] != '/';
    int length;
    if (path != NULL && path[0] == '/')
        length = snprintf(out, size, "file:%s", path);
    else if (relative && getcwd(folder, sizeof folder) != NULL)
        length = snprintf(out, size, "file:%s/%s", folder, path);
    else
        length = snprintf(out, size, "%s", store);
    return (size_t)length < size;
}

/* The URL that was probably meant by a store without a scheme: a path, the name of a scheme, or a
 * Redis server; "" if none. Anything else, or a value with an @, may be a secret. */
static void guess_url(const char *store, struct text *out)
{
    size_t length = strlen(store);
    bool log = length > 4 && strcmp(store + length - 4, ".log") == 0;
    if (strchr(store, '@') != NULL)
        return;
    for (size_t i = 0; lh_store_scheme(i) != NULL; i++) {
        if (strcmp(lh_store_scheme(i), store) == 0) {
            text_add(out, store);
            text_add(out, strncmp(store, "redis", 5) == 0 ? "://HOST" : ":");
            return;
        }
    }
    if (strchr("/.~", store[0]) != NULL || (log && strchr(store, ':') == NULL))
        text_add(out, "file:");
    else if (strcmp(store + strcspn(store, ":"), ":6379") == 0)
        text_add(out, "redis://");
    else
        return;
    text_add(out, store);
}

/* EXIT_DONE, or a usage error that names the URL that was meant. */
static int check_scheme(const struct context *context)
{
    static const char *const ways[] = {[FROM_DEFAULT] = "--store ",
                                       [FROM_CONFIG] = "in the config file store: ",
                                       [FROM_ENVIRONMENT] = "LEASEHOLD_STORE=",
                                       [FROM_FLAG] = "--store "};
    const char *store = context->settings.store;
    char meant[URL_SIZE];
    struct text text;
    text_init(&text, meant, sizeof meant);
    guess_url(store, &text);
    if (meant[0] == '\0')
        return EXIT_DONE;
    return usage_error(context, "the store '%.80s' has no scheme; write %s%.80s", store,
                       ways[context->store_from], meant);
}

int context_find_store(struct context *context)
{
    const char *store = context->settings.store;
    if (store == NULL) {
        char path[PATH_MAX];
        if (!default_store_path(geteuid() == 0, path, sizeof path))
            return usage_error(context, "no store is given and HOME is not set; give --store "
                                        "file:/path/to.log or set LEASEHOLD_STORE");
        (void)snprintf(context->url, sizeof context->url, "file:%s", path);
        (void)snprintf(context->shown, sizeof context->shown, "%s", context->url);
        return EXIT_DONE;
    }
    int status = check_scheme(context);
    if (status != EXIT_DONE)
        return status;
    if (!store_url_absolute(store, context->url, sizeof context->url))
        return usage_error(context, "the store's URL is too long");
    struct text shown;
    text_init(&shown, context->shown, sizeof context->shown);
    url_redact(context->url, &shown);
    return EXIT_DONE;
}

int context_prepare_store(struct context *context)
{
    int status = context_find_store(context);
    if (status != EXIT_DONE || context->settings.store != NULL ||
        make_folder(context_store_path(context)))
        return status;
    return output_error(context, LH_UNAVAILABLE,
                        "cannot create the directory of the default store %s: %s; "
                        "give another with --store",
                        context_store_path(context), strerror(errno));
}

const char *context_store_hint(const struct context *context, const struct lh_report *report)
{
    static const char *const redis[] = {"redis://", "rediss://", "redis:///", "rediss:///"};
    if (report->outcome != LH_UNAVAILABLE)
        return NULL;
    if (strncmp(context->url, "k8s:", 4) == 0 && strstr(report->text, "kubeconfig") != NULL)
        return getenv("KUBECONFIG") == NULL ? "set KUBECONFIG, or run in a pod"
                                            : "KUBECONFIG must name a readable file";
    for (size_t i = 0; i < sizeof redis / sizeof redis[0]; i++) {
        if (strcmp(context->url, redis[i]) == 0)
            return getenv("REDIS_URL") != NULL
                       ? "without a host this is localhost; write --store \"$REDIS_URL\""
                       : "without a host this is localhost; write redis://HOST:PORT, or set "
                         "REDIS_URL and write --store \"$REDIS_URL\"";
    }
    return NULL;
}

const char *context_store_path(const struct context *context)
{
    return file_path(context->url);
}

int context_find_program(const struct context *context, char *path, size_t size, const char *so)
{
    int error = child_find_program(context->program[0], path, size);
    if (error == 0)
        return EXIT_DONE;
    bool missing = error == ENOENT || error == ENOTDIR;
    (void)output_error(context, LH_USAGE, "%s: %s; %s", context->program[0],
                       missing ? "not found" : strerror(error), so);
    return missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* In a cluster "namespace/pod". */
const char *context_holder(const struct context *context)
{
    static char value[512];
    if (context->settings.holder != NULL)
        return context->settings.holder;
    const char *pod = getenv("POD_NAME"), *space = getenv("POD_NAMESPACE");
    if (pod == NULL || pod[0] == '\0')
        return NULL;
    bool named = space != NULL && space[0] != '\0';
    (void)snprintf(value, sizeof value, "%s%s%s", named ? space : "", named ? "/" : "", pod);
    return value;
}

static void context_on_event(void *user, const struct lh_event *event)
{
    struct context *context = user;
    if (event->kind != LH_EVENT_WAITING)
        return;
    (void)snprintf(context->awaited_key, sizeof context->awaited_key, "%s", event->key);
    output_detail(context, "waiting for %s", event->key);
    int64_t poll_ms = context->client != NULL ? lh_poll_ms(context->client) : 0;
    if (poll_ms > 0) {
        char shown[DURATION_SHOWN];
        output_detail(context, "this store reports no changes: a waiter polls every %s",
                      duration_show(poll_ms, shown));
    }
}

static void context_on_finding(void *user, const struct lh_finding *finding)
{
    output_detail(user, "%s; %s", finding->text, finding->remedy);
}

/* Warns when the URL wants Events that we may not write. */
static void context_warn_events(struct context *context)
{
    struct lh_diagnose_options options = LH_DIAGNOSE_OPTIONS_INIT;
    options.events_only = true;
    options.timeout_ms = context->settings.store_timeout_ms;
    (void)lh_diagnose(context->url, &options, context_on_finding, context, /* report= */ NULL);
}

/* Before the report, which is the last line on stderr. */
static void count_failed_open(struct context *context, int status)
{
    if (status != EXIT_UNAVAILABLE && status != EXIT_DENIED)
        return;
    metrics_file_count(/* granted= */ false, LH_UNAVAILABLE);
    metrics_file_update(context);
}

static int open_store(struct context *context, bool to_acquire)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int status = context_prepare_store(context);
    if (status != EXIT_DONE && to_acquire)
        count_failed_open(context, status);
    if (status != EXIT_DONE)
        return status;
    options.own_loop = true;
    options.holder = context_holder(context);
    options.timeout_ms = context->settings.store_timeout_ms;
    const struct settings *settings = &context->settings;
    context->interactive = !settings->quiet && !settings->json && isatty(STDERR_FILENO) == 1;
    options.on_event = context_on_event;
    options.user = context;
    output_detail(context, "store %s", context->shown);
    if (context->settings.config != NULL)
        output_detail(context, "config %s", context->settings.config);
    if (lh_open(context->url, &options, &context->client, &report) != LH_OK) {
        if (to_acquire)
            count_failed_open(context, outcome_exit_status(report.outcome));
        return output_report(context, NULL, &report);
    }
    output_detail(context, "%s", report.text);
    if (settings->verbose)
        context_warn_events(context);
    return EXIT_DONE;
}

int context_open_store(struct context *context)
{
    return open_store(context, /* to_acquire= */ false);
}

int context_open_store_to_acquire(struct context *context)
{
    return open_store(context, /* to_acquire= */ true);
}
