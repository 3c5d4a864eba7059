/* SPDX-License-Identifier: Apache-2.0 */
/* See survey.h. The driver itself is opened, and asked from beside its requests. */
#include "store/k8s/survey.h"

#include "io/host.h"
#include "store/k8s/k8s_inside.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MAX = 1 << 20, TOKEN_PART = 4096, LOGIN_LOOK_MS = 50 };

struct k8s_survey {
    bool over;
    struct k8s_reply *reply;
    struct k8s_collection *collection;
    struct k8s k8s;
};

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

struct k8s_survey *k8s_survey_new(const char *url, int64_t patience_ms, struct text *why)
{
    struct k8s_survey *survey = calloc(1, sizeof *survey);
    struct store_site site = {.clock = {.now_ms = no_time},
                              .session = (uint64_t)host_boot_ms(),
                              .patience_ms = patience_ms};
    if (survey == NULL) {
        text_add(why, "memory is short");
        return NULL;
    }
    if (k8s_driver.open(&survey->k8s, url, &site, why))
        return survey;
    free(survey);
    return NULL;
}

void k8s_survey_free(struct k8s_survey **survey)
{
    if (*survey == NULL)
        return;
    k8s_driver.close(&(*survey)->k8s);
    free(*survey);
    *survey = NULL;
}

/* ---- who we are ---- */

static int digit_of(char byte)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *digit = byte != '\0' ? strchr(digits, byte) : NULL;
    return digit != NULL ? (int)(digit - digits) : -1;
}

/* Of "head.claims.signature", each in base64url; −1 when it is another kind of token. */
static int64_t end_of_token(const char *token)
{
    char claims[TOKEN_PART];
    size_t length = 0;
    unsigned bits = 0, count = 0;
    const char *at = token != NULL ? strchr(token, '.') : NULL;
    for (at += at != NULL ? 1 : 0; at != NULL && digit_of(*at) >= 0 && length < TOKEN_PART; at++) {
        bits = (bits << 6 | (unsigned)digit_of(*at)) & 0xffff;
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        claims[length++] = (char)(bits >> count & 0xff);
    }
    json_t *json = length < TOKEN_PART ? json_loadb(claims, length, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *end = json_object_get(json, "exp");
    int64_t end_s = json_is_integer(end) ? json_integer_value(end) : -1;
    json_decref(json);
    explicit_bzero(claims, sizeof claims);
    return end_s;
}

void k8s_survey_identity(struct k8s_survey *survey, struct k8s_identity *out)
{
    struct k8s *k8s = &survey->k8s;
    const struct kube_config *config = &k8s->config;
    const char *bearer = NULL;
    char words[WHY_SIZE];
    struct text why;
    text_init(&why, words, sizeof words);
    *out = (struct k8s_identity){.server = config->server,
                                 .namespace = config->namespace,
                                 .token_file = config->token_file != NULL,
                                 .token = config->token != NULL,
                                 .plugin = config->plugin != NULL,
                                 .certificate = config->tls.cert_file != NULL,
                                 .token_ends_s = -1,
                                 .events = k8s->url.events};
    if (config->plugin == NULL && kube_login_ready(k8s->login) &&
        kube_login_bearer(k8s->login, &bearer, &why))
        out->token_ends_s = end_of_token(bearer);
}

/* ---- asking ---- */

/* Until it is over; `give_up_at_ms` is for a plugin that says nothing. */
static void turn(struct k8s_survey *survey, int64_t most_ms)
{
    struct pollfd news = {.fd = net_fd(survey->k8s.net), .events = POLLIN};
    (void)poll(&news, 1, (int)most_ms);
    net_step(survey->k8s.net);
}

static void on_reply(void *owner, const struct http_answer *answer)
{
    struct k8s_survey *survey = owner;
    struct k8s_reply *reply = survey->reply;
    survey->over = true;
    reply->status = answer->status;
    reply->date_s = answer->date_s;
    reply->json = kube_parse(answer->body, answer->body_length);
    if (answer->status < 200 || answer->status > 299)
        (void)snprintf(reply->why, sizeof reply->why, "%s", k8s_explain(&survey->k8s, answer));
}

void k8s_survey_ask(struct k8s_survey *survey, const char *method, const char *place, json_t *body,
                    struct k8s_reply *out)
{
    struct k8s *k8s = &survey->k8s;
    struct http_site site = {.done = on_reply, .owner = survey};
    int64_t began_ms = host_boot_ms(), until_ms = began_ms + k8s->site.patience_ms;
    *out = (struct k8s_reply){.date_s = -1};
    survey->reply = out;
    survey->over = false;
    while (!kube_login_ready(k8s->login) && host_boot_ms() < until_ms)
        turn(survey, LOGIN_LOOK_MS);
    began_ms = host_boot_ms();
    if (k8s_ask_at(k8s, method, place, body, REPLY_MAX, until_ms, &site) == NULL) {
        (void)snprintf(out->why, sizeof out->why, "%s", k8s->why);
        survey->over = true;
    }
    json_decref(body);
    while (!survey->over)
        turn(survey, /* most_ms= */ 1000);
    out->took_ms = host_boot_ms() - began_ms;
}

void k8s_reply_done(struct k8s_reply *reply)
{
    json_decref(reply->json);
    reply->json = NULL;
}

static void on_collected(void *owner, const struct collect_tally *tally)
{
    struct k8s_survey *survey = owner;
    struct k8s_collection *out = survey->collection;
    survey->over = true;
    out->left = tally->left;
    out->removed = tally->removed;
    out->taken = tally->taken;
    (void)snprintf(out->why, sizeof out->why, "%s", tally->why != NULL ? tally->why : "");
}

void k8s_survey_collect(struct k8s_survey *survey, unsigned rate, struct k8s_collection *out)
{
    *out = (struct k8s_collection){0};
    survey->collection = out;
    survey->over = false;
    collector_begin(&survey->k8s, rate, on_collected, survey);
    while (!survey->over)
        turn(survey, /* most_ms= */ 1000);
}
