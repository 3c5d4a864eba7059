/* SPDX-License-Identifier: Apache-2.0 */
/* See survey.h. */
#include "store/redis/survey.h"

#include "io/host.h"
#include "store/redis/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct redis_survey {
    struct net *net;
    struct redis_url url;
    struct credentials credentials;
    struct link link;
    struct link_call call;
    int64_t patience_ms;
    bool ready, over, answered, refused;
    struct text text; /* of what was said */
    char said[REDIS_SAID_MAX];
};

static void on_ready(void *owner)
{
    struct redis_survey *survey = owner;
    survey->ready = true;
}

static void say(struct redis_survey *survey, const char *words, size_t length)
{
    text_init(&survey->text, survey->said, sizeof survey->said);
    text_add_bytes(&survey->text, words, length);
}

static void on_lost(void *owner, const struct link_error *error)
{
    struct redis_survey *survey = owner;
    if (!survey->over)
        say(survey, error->why, strlen(error->why));
    survey->over = true;
}

static bool on_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    (void)owner, (void)walk, (void)count;
    return true;
}

static void on_reply(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                     const struct link_error *error)
{
    struct redis_survey *survey =
        (struct redis_survey *)(void *)((char *)call - offsetof(struct redis_survey, call));
    struct resp_item inner;
    if (error != NULL)
        return; /* the loss is told apart */
    survey->answered = true;
    survey->refused = item->kind == RESP_ERROR;
    say(survey, item->text, item->kind == RESP_TEXT || survey->refused ? item->length : 0);
    while (resp_next(walk, &inner)) {
        if (inner.kind != RESP_TEXT)
            continue;
        text_add_bytes(&survey->text, inner.text, inner.length);
        text_add(&survey->text, "\n");
    }
}

/* Until that has become true, or the server is gone, or time is up. */
static bool await(struct redis_survey *survey, const bool *what)
{
    int64_t end_ms = host_boot_ms() + survey->patience_ms;
    struct pollfd news = {.fd = net_fd(survey->net), .events = POLLIN};
    for (;;) {
        net_step(survey->net);
        int64_t left_ms = end_ms - host_boot_ms();
        if (*what || survey->over || left_ms <= 0)
            return *what;
        (void)poll(&news, 1, (int)left_ms);
    }
}

static void explain(const struct redis_survey *survey, struct text *why)
{
    text_add(why, survey->over || survey->refused ? survey->said : "it does not answer");
}

struct redis_survey *redis_survey_new(const char *url, int64_t patience_ms, struct text *why)
{
    struct redis_survey *survey = calloc(1, sizeof *survey);
    struct link_site site = {
        .ready = on_ready, .lost = on_lost, .pushed = on_pushed, .owner = survey};
    if (survey == NULL) {
        text_add(why, "memory is short");
        return NULL;
    }
    survey->patience_ms = patience_ms;
    survey->call.reply = on_reply;
    if (!redis_url_read(url, &survey->url, why))
        goto out;
    survey->net = net_new();
    if (survey->net == NULL) {
        text_add(why, "memory or descriptors are short");
        goto out;
    }
    if (!credentials_init(&survey->credentials, &survey->url, survey->net, why)) {
        net_free(&survey->net);
        goto out;
    }
    link_init(&survey->link, survey->net, &survey->url, &survey->credentials, &site, /* seed= */ 1);
    survey->link.patience_ms = patience_ms;
    link_want(&survey->link);
    if (await(survey, &survey->ready))
        return survey;
    explain(survey, why);
out:
    redis_survey_free(&survey);
    return NULL;
}

void redis_survey_free(struct redis_survey **survey)
{
    if (*survey == NULL)
        return;
    if ((*survey)->net != NULL) {
        link_done(&(*survey)->link);
        credentials_done(&(*survey)->credentials);
        net_free(&(*survey)->net);
    }
    free(*survey);
    *survey = NULL;
}

const char *redis_survey_ask(struct redis_survey *survey, const char *first, const char *second,
                             const char *third, struct text *why)
{
    survey->answered = survey->refused = false;
    if (!survey->over) {
        link_begin(&survey->link, &survey->call, second == NULL ? 1 : third == NULL ? 2 : 3);
        link_say(&survey->link, first);
        if (second != NULL)
            link_say(&survey->link, second);
        if (third != NULL)
            link_say(&survey->link, third);
        stream_flush(survey->link.stream);
    }
    if (!survey->over && await(survey, &survey->answered) && !survey->refused)
        return survey->said;
    explain(survey, why);
    survey->over = survey->over || !survey->answered; /* a late answer would be another one's */
    return NULL;
}

bool redis_survey_value(const char *said, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (const char *line = said; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        const char *value = line + length + 1;
        size_t count = strcspn(value, "\r\n");
        count = count < size ? count : size - 1;
        memcpy(out, value, count);
        out[count] = '\0';
        return true;
    }
    return false;
}
