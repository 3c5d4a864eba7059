/* SPDX-License-Identifier: Apache-2.0 */
/* See workload_end.h. */
#include "workload/workload_end.h"

#include "http/kube_api.h"

#include <string.h>
#include <time.h>

#define CONDITION "condition="

enum { STATUS_MAX = 255 };

/* One alternative of a rule. */
struct term {
    const char *name; /* of a condition, or a path without its first dot */
    size_t length;
    const char *value; /* NULL: none */
    size_t value_length;
    bool is_condition;
};

/* Parses the alternative at `text`; returns the start of the next one, or NULL after the last. */
static const char *next_term(const char *text, struct term *out)
{
    size_t all = strcspn(text, ",");
    const char *end = text + all;
    *out = (struct term){.is_condition = strncmp(text, CONDITION, sizeof CONDITION - 1) == 0};
    out->name = text + (out->is_condition ? sizeof CONDITION - 1 : 1);
    const char *equals =
        out->name <= end ? memchr(out->name, '=', (size_t)(end - out->name)) : NULL;
    out->length = out->name <= end ? (size_t)((equals != NULL ? equals : end) - out->name) : 0;
    if (equals != NULL) {
        out->value = equals + 1;
        out->value_length = (size_t)(end - out->value);
    }
    return *end == ',' ? end + 1 : NULL;
}

/* NULL is the default, which has none. */
static const char *end_syntax_error(const char *text, bool paths_only)
{
    while (text != NULL) {
        const char *begin = text;
        struct term term;
        text = next_term(text, &term);
        if (*begin != '.' && !term.is_condition)
            return "write condition=NAME[=STATUS] or .path.to.member[=VALUE], separated by commas";
        if (term.length == 0 || (term.value != NULL && term.value_length == 0))
            return "a name or a value is missing";
        if (paths_only && (term.is_condition || term.value != NULL))
            return "the end time is given by paths, such as .status.completionTime";
    }
    return NULL;
}

static const char *or_default(const char *text, const char *usual)
{
    return text != NULL ? text : usual;
}

const char *end_rules_broken(const struct end_rules *rules)
{
    const char *wrong = end_syntax_error(rules->done_when, /* paths_only= */ false);
    if (wrong == NULL)
        wrong = end_syntax_error(rules->failed_when, /* paths_only= */ false);
    return wrong != NULL ? wrong : end_syntax_error(rules->ended_at, /* paths_only= */ true);
}

static bool is_equal(const char *text, const char *value, size_t length)
{
    return strlen(text) == length && memcmp(text, value, length) == 0;
}

static const json_t *condition_of(const json_t *object, const struct term *term)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(json_object_get(object, "status"), "conditions"), index,
                       entry)
    {
        if (is_equal(kube_string(entry, "type"), term->name, term->length))
            return entry;
    }
    return NULL;
}

static const json_t *member_at(const json_t *json, const struct term *term)
{
    const char *at = term->name, *end = term->name + term->length;
    while (json != NULL && at < end) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t length = (size_t)((dot != NULL ? dot : end) - at);
        char name[STATUS_MAX + 1];
        if (length > STATUS_MAX)
            return NULL;
        memcpy(name, at, length);
        name[length] = '\0';
        json = json_object_get(json, name);
        at += length + 1;
    }
    return json;
}

static bool member_matches(const json_t *member, const struct term *term)
{
    if (member == NULL || json_is_null(member))
        return false;
    if (term->value == NULL)
        return !json_is_string(member) || json_string_length(member) > 0;
    if (json_is_boolean(member))
        return is_equal(json_is_true(member) ? "true" : "false", term->value, term->value_length);
    const char *text = json_string_value(member);
    return text != NULL && is_equal(text, term->value, term->value_length);
}

static bool term_holds(const json_t *object, const struct term *term)
{
    if (!term->is_condition)
        return member_matches(member_at(object, term), term);
    const json_t *entry = condition_of(object, term);
    if (entry == NULL)
        return false;
    return term->value != NULL
               ? is_equal(kube_string(entry, "status"), term->value, term->value_length)
               : strcmp(kube_string(entry, "status"), "True") == 0;
}

/* Finds the first alternative that holds. */
static bool find_term(const json_t *object, const char *text, struct term *out)
{
    while (text != NULL) {
        text = next_term(text, out);
        if (term_holds(object, out))
            return true;
    }
    return false;
}

/* With the alternative that decided it. */
static enum end_state find_end(const struct end_rules *rules, const json_t *object,
                               struct term *out)
{
    if (find_term(object, or_default(rules->failed_when, END_FAILED_DEFAULT), out))
        return END_FAILED;
    bool done = find_term(object, or_default(rules->done_when, END_DONE_DEFAULT), out);
    return done ? END_DONE : END_RUNS;
}

enum end_state end_state_of(const struct end_rules *rules, const json_t *object)
{
    struct term term;
    return find_end(rules, object, &term);
}

/* ---- end time ---- */

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t time_by_paths(const json_t *object, const char *paths)
{
    while (paths != NULL) {
        struct term term;
        paths = next_term(paths, &term);
        const char *text = json_string_value(member_at(object, &term));
        int64_t at_ms = text != NULL ? kube_time_ms(text) : -1;
        if (at_ms >= 0)
            return at_ms;
    }
    return -1;
}

static int64_t time_by_condition(const struct end_rules *rules, const json_t *object)
{
    struct term term;
    if (find_end(rules, object, &term) != END_RUNS && term.is_condition)
        return kube_time_ms(kube_string(condition_of(object, &term), "lastTransitionTime"));
    return -1;
}

static const json_t *terminated_of(const json_t *container)
{
    return json_object_get(json_object_get(container, "state"), "terminated");
}

static const json_t *containers_of(const json_t *object)
{
    return json_object_get(json_object_get(object, "status"), "containerStatuses");
}

static int64_t time_by_containers(const json_t *object)
{
    int64_t at_ms = -1;
    size_t index;
    const json_t *container;
    json_array_foreach(containers_of(object), index, container)
    {
        at_ms = later(at_ms, kube_time_ms(kube_string(terminated_of(container), "finishedAt")));
    }
    return at_ms;
}

static int64_t last_written(const json_t *metadata)
{
    int64_t at_ms = -1;
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(metadata, "managedFields"), index, entry)
    {
        at_ms = later(at_ms, kube_time_ms(kube_string(entry, "time")));
    }
    return at_ms;
}

int64_t end_time_of(const struct end_rules *rules, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    int64_t at_ms = time_by_paths(object, or_default(rules->ended_at, END_TIME_DEFAULT));
    if (at_ms < 0)
        at_ms = time_by_condition(rules, object);
    if (at_ms < 0)
        at_ms = time_by_containers(object);
    if (at_ms < 0)
        at_ms = last_written(metadata);
    return later(at_ms, kube_time_ms(kube_string(metadata, "creationTimestamp")));
}

int end_status_of(const json_t *object)
{
    size_t index;
    const json_t *container;
    json_array_foreach(containers_of(object), index, container)
    {
        json_int_t status =
            json_integer_value(json_object_get(terminated_of(container), "exitCode"));
        if (status > 0 && status <= STATUS_MAX)
            return (int)status;
    }
    return 1;
}
