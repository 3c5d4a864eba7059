/* SPDX-License-Identifier: Apache-2.0 */
/* A story while it is played; its verbs are in verbs.c. */
#ifndef LEASEHOLD_TESTS_STORY_H
#define LEASEHOLD_TESTS_STORY_H

#include "core/multi.h"
#include "world.h"

enum { STORY_TEXT = 64 * 1024, STORY_LINES = 128, GROUPS_MAX = 4, WORD_MAX = 64 };

/* An actor's options for ids and watermarks, while its request lasts. */
struct story_args {
    char payload[WORD_MAX], result[WORD_MAX], watermark[WORD_MAX], until[WORD_MAX];
    char value[WORD_MAX], expected[WORD_MAX];
    struct completion completion;
};

/* Several keys acquired by one caller: one actor for each key. */
struct group {
    struct multi multi;
    struct actor *members[MULTI_MAX];
};

struct story {
    char text[STORY_TEXT];
    char script[STORY_TEXT]; /* a copy to be split into lines */
    const char *expected;
    size_t script_length;
    const char *lines[STORY_LINES];
    size_t line_count;
    int64_t ends_ms;
    char key_names[KEYS_MAX][64];
    struct story_args args[ACTORS_MAX];
    struct group groups[GROUPS_MAX];
    size_t group_count;
    struct world world;
};

/* The actor of that name, created at its first use. */
struct actor *story_actor(struct story *story, const char *name);
/* Fills the options for ids and watermarks from the line. */
void story_set_args(struct story *story, struct actor *actor, const char *line);
void story_set_store(struct story *story, const char *text);
/* Executes "WHO VERB …". */
void story_do(struct story *story, const char *line);
void story_told(struct story *story, struct actor *actor, const struct lease_output *out);

#endif
