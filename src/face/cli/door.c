/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which store is meant, who we are to it, and opening it. The default store is a file in the folder
 * of the user's state, which is made, for its owner only, when it is missing.
 */
#include "face/cli/doctor.h"

#include "io/program.h"
#include "wire/url_shown.h"

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

/* Of the user who became root by sudo, whose HOME may be root's by now. */
static bool sudo_store_path(char *out, size_t size)
{
    const char *words = getenv("SUDO_UID");
    char *end = NULL;
    unsigned long user = words != NULL ? strtoul(words, &end, /* base= */ 10) : 0;
    if (geteuid() != 0 || user == 0 || user > UINT32_MAX || *end != '\0')
        return false;
    char words_of_entry[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r((uid_t)user, &entry, words_of_entry, sizeof words_of_entry, &found) != 0 ||
        found == NULL || entry.pw_dir[0] != '/')
        return false;
    int length = snprintf(out, size, "%s/.local/state/leasehold/locks.log", entry.pw_dir);
    return length > 0 && (size_t)length < size;
}

size_t default_stores(struct default_store out[DEFAULT_STORES])
{
    static const char *const users[] = {"others than root use", "root uses",
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

void say_other_default(const struct default_store *other, struct text *out)
{
    text_add(out, other->hidden ? "there may be another default store, "
                                : "there is another default store, ");
    text_add(out, other->path);
    text_add(out, ", which ");
    text_add(out, other->users);
    text_add(out, " without --store; its locks are not seen here");
    if (other->hidden)
        text_add(out, " (not permitted to look)");
}

void visit_warn_of_defaults(const struct visit *visit)
{
    struct default_store stores[DEFAULT_STORES];
    const struct settings *settings = &visit->settings;
    bool watched = !settings->quiet && !settings->json && isatty(STDERR_FILENO) == 1;
    if (visit->store_from != FROM_DEFAULT || !(watched || settings->verbose))
        return;
    size_t count = default_stores(stores);
    for (size_t i = 0; i < count; i++) {
        char line[LINE_SIZE];
        struct text text;
        if (strcmp(stores[i].path, visit_file(visit)) == 0)
            continue;
        text_init(&text, line, sizeof line);
        say_other_default(&stores[i], &text);
        if (settings->verbose)
            say_detail(visit, "%s", line);
        else
            (void)fprintf(stderr, "leasehold: %s\n", line);
        return;
    }
}

/* Makes the folder of the file, and those above it; usually there is nothing to make. */
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

/* A relative path means another file in another folder, where the command may well go. False: it is
 * too long. */
static bool spell_out(const char *store, char *out, size_t size)
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

int visit_name(struct visit *visit)
{
    const char *store = visit->settings.store;
    if (store == NULL) {
        char path[PATH_MAX];
        if (!default_store_path(geteuid() == 0, path, sizeof path))
            return say_usage(visit, "no store is named and no home is known; give --store "
                                    "file:/path/to.log or set LEASEHOLD_STORE");
        (void)snprintf(visit->url, sizeof visit->url, "file:%s", path);
        (void)snprintf(visit->shown, sizeof visit->shown, "%s", visit->url);
        return EXIT_DONE;
    }
    if (!spell_out(store, visit->url, sizeof visit->url))
        return say_usage(visit, "the store's URL is too long");
    struct text shown;
    text_init(&shown, visit->shown, sizeof visit->shown);
    url_show(visit->url, &shown);
    return EXIT_DONE;
}

int visit_url(struct visit *visit)
{
    int status = visit_name(visit);
    if (status != EXIT_DONE || visit->settings.store != NULL || make_folder(visit_file(visit)))
        return status;
    return say_trouble(visit, LH_UNAVAILABLE,
                       "the folder of the default store %s cannot be "
                       "made: %s; give another with --store",
                       visit_file(visit), strerror(errno));
}

const char *visit_file(const struct visit *visit)
{
    return file_path(visit->url);
}

int visit_find_program(const struct visit *visit, char *path, size_t size, const char *so)
{
    int error = program_find(visit->program[0], path, size);
    if (error == 0)
        return EXIT_DONE;
    bool missing = error == ENOENT || error == ENOTDIR;
    (void)say_trouble(visit, LH_USAGE, "%s: %s; %s", visit->program[0],
                      missing ? "not found" : strerror(error), so);
    return missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* "namespace/pod" in a cluster. */
const char *visit_holder(const struct visit *visit)
{
    static char words[512];
    if (visit->settings.holder != NULL)
        return visit->settings.holder;
    const char *pod = getenv("POD_NAME"), *space = getenv("POD_NAMESPACE");
    if (pod == NULL || pod[0] == '\0')
        return NULL;
    bool named = space != NULL && space[0] != '\0';
    (void)snprintf(words, sizeof words, "%s%s%s", named ? space : "", named ? "/" : "", pod);
    return words;
}

static void on_event(void *user, const struct lh_event *event)
{
    struct visit *visit = user;
    if (event->kind == LH_EVENT_WAITING)
        (void)snprintf(visit->waiting_for, sizeof visit->waiting_for, "%s", event->key);
}

int visit_open(struct visit *visit)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_report report;
    int status = visit_url(visit);
    if (status != EXIT_DONE)
        return status;
    options.own_loop = true;
    options.holder = visit_holder(visit);
    options.patience_ms = visit->settings.store_timeout_ms;
    const struct settings *settings = &visit->settings;
    visit->watched = !settings->quiet && !settings->json && isatty(STDERR_FILENO) == 1;
    if (visit->watched) {
        options.on_event = on_event;
        options.user = visit;
    }
    say_detail(visit, "store %s", visit->shown);
    if (visit->settings.config != NULL)
        say_detail(visit, "config %s", visit->settings.config);
    if (lh_open(visit->url, &options, &visit->client, &report) != LH_OK)
        return say_report(visit, NULL, &report);
    say_detail(visit, "%s", report.text);
#ifndef LH_WITHOUT_KUBERNETES
    if (settings->verbose && strncmp(visit->url, "k8s:", strlen("k8s:")) == 0)
        doctor_tell_events(visit);
#endif
    return EXIT_DONE;
}
