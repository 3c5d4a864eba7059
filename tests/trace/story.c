/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays stories: requests and faults at given times, in virtual time on the shipped core. The
 * decision log is compared byte for byte with the story's own. story FILE… is the test (TAP),
 * story --play FILE prints one, story --bless FILE rewrites the log for a person to review.
 *
 * A story is a text: lines with `#` are comments, `store …` sets the store's capabilities,
 * `MS WHO VERB …` is a step, and the log follows `---`. The verbs are in the tables of verbs.c.
 */
#include "story.h"

#include "oracle.h"

#include <stdlib.h>
#include <string.h>

static struct story story; /* large: kept off the stack */

static void notify(struct world *world, struct actor *actor, const struct lease_output *out)
{
    story_told(world->script, actor, out);
}

static void happens(struct world *world, struct actor *actor, int what, uint64_t value)
{
    (void)what;
    struct story *s = world->script;
    if (actor->paused && actor->resumes_at_ms == world->now_ms)
        actor_resume(world, actor);
    else
        story_do(s, s->lines[value]);
}

static bool read_file(const char *path, struct story *s)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    size_t length = fread(s->text, 1, sizeof s->text - 1, file);
    (void)fclose(file);
    s->text[length] = '\0';
    char *rule = strstr(s->text, "\n---\n");
    s->expected = rule != NULL ? rule + 5 : s->text + length;
    s->script_length = rule != NULL ? (size_t)(rule - s->text) + 5 : length;
    (void)snprintf(s->script, sizeof s->script, "%.*s", (int)s->script_length, s->text);
    return length > 0;
}

/* Splits the script into lines and schedules each one at its time. */
static void plan_script(struct story *s)
{
    char *rest = s->script;
    s->line_count = 0;
    for (char *line = strtok_r(rest, "\n", &rest); line != NULL;
         line = strtok_r(rest, "\n", &rest)) {
        if (line[0] == '#' || strcmp(line, "---") == 0)
            continue;
        if (strncmp(line, "store ", 6) == 0) {
            story_set_store(s, line + 6);
            continue;
        }
        char *words = line;
        int64_t at_ms = strtoll(line, &words, 10);
        if (words == line || *words != ' ' || s->line_count == STORY_LINES) {
            (void)fprintf(stderr, "story: cannot read: %s\n", line);
            exit(64);
        }
        s->lines[s->line_count] = words + 1;
        world_plan(&s->world, story_actor(s, "store"), at_ms, /* what= */ -1, s->line_count++);
        s->ends_ms = at_ms;
    }
}

/* Plays the story and returns its log, to be freed. */
static char *play(struct story *s)
{
    enum { AFTERWARDS_MS = 60000 };
    char *log = NULL;
    size_t length = 0;
    struct counts counts = {0};
    FILE *trace = open_memstream(&log, &length);
    if (trace == NULL)
        abort();
    world_init(&s->world, /* seed= */ 1, &counts);
    s->world.trace = trace;
    s->world.notify = notify;
    s->world.event = happens;
    s->world.script = s;
    s->world.faults.least_ms = 1;
    s->world.rules.tick_ms = 1;
    s->world.rules.facts.reply_timeout_ms = 250;
    s->world.rules.fastest = 4000;
    s->group_count = 0;
    (void)story_actor(s, "store");
    plan_script(s);
    world_run(&s->world, s->ends_ms + AFTERWARDS_MS);
    (void)fclose(trace);
    world_done(&s->world);
    return log;
}

static void show_difference(const char *path, const char *expected, const char *log)
{
    size_t line = 1, at = 0;
    while (expected[at] != '\0' && expected[at] == log[at])
        line += expected[at++] == '\n' ? 1 : 0;
    while (at > 0 && expected[at - 1] != '\n')
        at--;
    (void)printf("# %s differs in line %zu of the log\n# expected: %.*s\n# played:   %.*s\n", path,
                 line, (int)strcspn(expected + at, "\n"), expected + at,
                 (int)strcspn(log + at, "\n"), log + at);
}

static bool test(const char *path, size_t number)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (!read_file(path, &story)) {
        (void)printf("not ok %zu - %s cannot be read\n", number, name);
        return false;
    }
    char *log = play(&story);
    bool same = strcmp(log, story.expected) == 0 && story.world.violation[0] == '\0';
    (void)printf("%sok %zu - %s\n", same ? "" : "not ", number, name);
    if (!same)
        show_difference(path, story.expected, log);
    free(log);
    return same;
}

static int bless(const char *path)
{
    if (!read_file(path, &story))
        return 66;
    char script[sizeof story.text];
    size_t length = story.script_length;
    memcpy(script, story.text, length);
    char *log = play(&story);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 73;
    (void)fwrite(script, 1, length, file);
    if (length < 5 || memcmp(script + length - 5, "\n---\n", 5) != 0)
        (void)fputs("---\n", file);
    (void)fputs(log, file);
    (void)fclose(file);
    free(log);
    return story.world.violation[0] != '\0' ? 1 : 0;
}

static int show(const char *path)
{
    if (!read_file(path, &story))
        return 66;
    for (const char *line = story.text; *line == '#'; line = strchr(line, '\n') + 1)
        (void)printf("%.*s\n", (int)strcspn(line, "\n"), line);
    char *log = play(&story);
    (void)fputs(log, stdout);
    free(log);
    return 0;
}

int main(int argc, char **argv)
{
    size_t failed = 0;
    if (argc == 3 && strcmp(argv[1], "--play") == 0)
        return show(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--bless") == 0)
        return bless(argv[2]);
    for (int i = 1; i < argc; i++)
        failed += test(argv[i], (size_t)i) ? 0 : 1;
    (void)printf("1..%d\n", argc - 1);
    return failed > 0 ? 1 : 0;
}
