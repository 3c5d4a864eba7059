/* SPDX-License-Identifier: Apache-2.0 */
/* See audit.h. */
#include "audit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRITES_MOST = 200000, NAME_SIZE = 64 };

struct write {
    char who[16], lease[NAME_SIZE];
    int64_t began_us, ended_us;
};

long audit_length(void)
{
    const char *path = getenv("K8S_AUDIT");
    FILE *log = path != NULL ? fopen(path, "re") : NULL;
    long length = 0;
    if (log == NULL)
        return 0; /* no request yet */
    if (fseek(log, 0, SEEK_END) == 0)
        length = ftell(log);
    (void)fclose(log);
    return length;
}

/* Parses "2026-01-31T12:00:00.123456Z"; −1: malformed. */
static int64_t moment_us(const char *text)
{
    struct tm parts = {0};
    const char *rest = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S.", &parts) : NULL;
    char *end = NULL;
    long fraction = rest != NULL ? strtol(rest, &end, 10) : 0;
    if (rest == NULL || end - rest != 6)
        return -1;
    return (int64_t)timegm(&parts) * 1000000 + fraction;
}

static const char *member(const json_t *line, const char *object, const char *name)
{
    const char *text = json_string_value(
        json_object_get(object != NULL ? json_object_get(line, object) : line, name));
    return text != NULL ? text : "";
}

static bool is_write(const json_t *line)
{
    const char *verb = member(line, NULL, "verb");
    bool writes =
        strcmp(verb, "create") == 0 || strcmp(verb, "update") == 0 || strcmp(verb, "delete") == 0;
    return writes && strcmp(member(line, "objectRef", "resource"), "leases") == 0;
}

/* False: the line cannot be parsed. */
static bool take_line(const char *text, struct write *writes, size_t *count)
{
    json_t *line = json_loads(text, 0, NULL);
    bool good = line != NULL;
    if (good && is_write(line)) {
        struct write *write = &writes[*count];
        (void)snprintf(write->who, sizeof write->who, "%s", member(line, "user", "uid"));
        (void)snprintf(write->lease, sizeof write->lease, "%s", member(line, "objectRef", "name"));
        write->began_us = moment_us(member(line, NULL, "requestReceivedTimestamp"));
        write->ended_us = moment_us(member(line, NULL, "stageTimestamp"));
        good = write->began_us > 0 && write->ended_us >= write->began_us && *write->lease != '\0';
        (*count)++;
    }
    json_decref(line);
    return good;
}

static int compare_pairs(const struct write *one, const struct write *other)
{
    int order = strcmp(one->who, other->who);
    return order != 0 ? order : strcmp(one->lease, other->lease);
}

static int compare_writes(const void *left, const void *right)
{
    const struct write *one = left, *other = right;
    int order = compare_pairs(one, other);
    return order != 0 ? order
                      : (one->began_us > other->began_us) - (one->began_us < other->began_us);
}

static void judge(struct write *writes, size_t count, int64_t apart_us, struct audit_writes *out)
{
    int64_t ended_us = 0;
    qsort(writes, count, sizeof *writes, compare_writes);
    *out = (struct audit_writes){.count = count, .least_gap_us = INT64_MAX};
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_pairs(&writes[i - 1], &writes[i]) != 0) {
            out->pairs++;
            ended_us = writes[i].ended_us;
            continue;
        }
        int64_t gap_us = writes[i].began_us - ended_us;
        out->together += gap_us < apart_us ? 1 : 0;
        if (gap_us < out->least_gap_us)
            out->least_gap_us = gap_us;
        if (writes[i].ended_us > ended_us)
            ended_us = writes[i].ended_us;
    }
}

bool audit_read(long from, int64_t apart_us, struct audit_writes *out)
{
    const char *path = getenv("K8S_AUDIT");
    struct write *writes = calloc(WRITES_MOST, sizeof *writes);
    FILE *log = path != NULL ? fopen(path, "re") : NULL;
    char *text = NULL;
    size_t size = 0, count = 0;
    bool good = log != NULL && writes != NULL && fseek(log, from, SEEK_SET) == 0;
    while (good && count < WRITES_MOST && getline(&text, &size, log) > 0)
        good = take_line(text, writes, &count);
    good = good && count < WRITES_MOST;
    if (good)
        judge(writes, count, apart_us, out);
    if (log != NULL)
        (void)fclose(log);
    free(text);
    free(writes);
    return good;
}
