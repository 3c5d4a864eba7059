/* SPDX-License-Identifier: Apache-2.0 */
/* See entra.h. One request at a time; what goes wrong is tried again, ever more slowly. */
#include "io/entra.h"

#include "io/backoff.h"
#include "io/host.h"
#include "io/http.h"
#include "io/secret.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MAX = 32 * 1024,
    FORM_MAX = 3 * SECRET_MAX + 1024, /* an escaped byte takes three */
    URL_MAX = 1024,
    PATIENCE_MS = 10000,
    FIRST_PAUSE_MS = 1000,
    LONGEST_PAUSE_MS = 60000,
    REFUSED_PAUSE_MS = 1000,
};

struct entra {
    struct net *net;
    struct entra_site site;
    struct http *http;
    struct http_request *request; /* NULL: none is on its way */
    struct net_timer again;
    struct backoff backoff;
    struct secret *assertion; /* NULL: a managed identity */
    struct entra_identity identity;
    char endpoint[ENTRA_ASKED_MAX];
    int64_t good_until_ms; /* 0: there was none yet */
    struct entra_token token;
    char why[320];
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void wipe(void *bytes, size_t length)
{
    explicit_bzero(bytes, length);
}

static bool is_https(const char *url)
{
    static const char scheme[] = "https://";
    return strncmp(url, scheme, sizeof scheme - 1) == 0;
}

/* ---- asking ---- */

static void ask(void *owner);

static void plan(struct entra *entra, int64_t pause_ms)
{
    net_call_at(entra->net, &entra->again, host_boot_ms() + pause_ms);
}

static void fail(struct entra *entra, const char *what, const char *more)
{
    struct text text;
    text_init(&text, entra->why, sizeof entra->why);
    text_add(&text, "no token of Entra ID: ");
    text_add(&text, what);
    text_add(&text, more[0] != '\0' ? ": " : "");
    text_add(&text, more);
    plan(entra, backoff_pause_ms(&entra->backoff));
    if (host_boot_ms() >= entra->good_until_ms)
        entra->site.changed(entra->site.owner);
}

static void fail_with_status(struct entra *entra, const struct http_answer *answer)
{
    char what[64], more[256];
    struct text text;
    text_init(&text, what, sizeof what);
    text_add(&text, entra->identity.endpoint);
    text_add(&text, " answered ");
    text_add_u64(&text, (uint64_t)answer->status);
    text_init(&text, more, sizeof more);
    entra_read_error(answer->body, answer->body_length, &text);
    fail(entra, what, more);
    if (answer->retry_after_ms > 0)
        plan(entra, answer->retry_after_ms);
}

static void take_answer(void *owner, const struct http_answer *answer)
{
    struct entra *entra = owner;
    entra->request = NULL;
    if (answer->status == 0) {
        fail(entra, entra->identity.endpoint, answer->why);
    } else if (answer->status != 200) {
        fail_with_status(entra, answer);
    } else if (!entra_read_token(answer->body, answer->body_length, &entra->token)) {
        fail(entra, entra->identity.endpoint, "its answer has no token");
    } else {
        int64_t lives_ms = entra->token.lives_s * 1000;
        entra->good_until_ms = host_boot_ms() + lives_ms;
        backoff_reset(&entra->backoff);
        plan(entra, lives_ms / 2 +
                        (int64_t)random_below(&entra->backoff.random, (uint64_t)lives_ms / 4 + 1));
        entra->site.changed(entra->site.owner);
    }
}

static void start(struct entra *entra, const char *method, const char *url,
                  const char *const *headers, const char *form)
{
    struct http_ask wanted = {.method = method,
                              .url = url,
                              .headers = headers,
                              .body = form,
                              .body_length = form != NULL ? strlen(form) : 0,
                              .tls = {.on = is_https(url)},
                              .patience_ms = PATIENCE_MS,
                              .most = ANSWER_MAX};
    struct http_site site = {.done = take_answer, .owner = entra};
    entra->request = http_start(entra->http, &wanted, &site);
    if (entra->request == NULL)
        fail(entra, "memory is short", "");
}

static void ask_managed(struct entra *entra)
{
    static const char *const headers[] = {"Metadata: true", NULL};
    char url[URL_MAX];
    struct text text;
    text_init(&text, url, sizeof url);
    entra_managed_url(&entra->identity, &text);
    start(entra, "GET", url, headers, NULL);
}

static void ask_workload(struct entra *entra)
{
    static const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    char url[URL_MAX], words[256];
    struct text text, why;
    text_init(&why, words, sizeof words);
    const char *assertion = secret_now(entra->assertion, host_boot_ms(), &why);
    char *form = malloc(FORM_MAX);
    if (assertion == NULL || form == NULL) {
        free(form);
        fail(entra, assertion == NULL ? words : "memory is short", "");
        return;
    }
    text_init(&text, url, sizeof url);
    entra_workload_url(&entra->identity, &text);
    entra->identity.assertion = assertion;
    text_init(&text, form, FORM_MAX);
    entra_workload_form(&entra->identity, &text);
    start(entra, "POST", url, headers, form);
    wipe(form, FORM_MAX);
    free(form);
}

static void ask(void *owner)
{
    struct entra *entra = owner;
    if (entra->request != NULL)
        return;
    if (entra->assertion != NULL)
        ask_workload(entra);
    else
        ask_managed(entra);
}

/* ---- who we are ---- */

/* Tokens travel in what it answers: only a server on this very machine may do without TLS. */
static bool is_safe(const char *endpoint)
{
    static const char *const here[] = {"http://127.0.0.1", "http://localhost",
                                       "http://169.254.169.254"};
    if (is_https(endpoint))
        return true;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        size_t length = strlen(here[i]);
        if (strncmp(endpoint, here[i], length) == 0 &&
            (endpoint[length] == '\0' || endpoint[length] == ':'))
            return true;
    }
    return false;
}

static bool read_environment(struct entra *entra, struct text *why)
{
    const char *file = environment("AZURE_FEDERATED_TOKEN_FILE");
    const char *endpoint = environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    struct text text;
    entra->identity.client_id = environment("AZURE_CLIENT_ID");
    entra->identity.tenant_id = environment("AZURE_TENANT_ID");
    if (endpoint == NULL)
        endpoint = "http://169.254.169.254";
    if (file != NULL) {
        endpoint = environment("AZURE_AUTHORITY_HOST");
        endpoint = endpoint != NULL ? endpoint : "https://login.microsoftonline.com";
        if (entra->identity.client_id == NULL || entra->identity.tenant_id == NULL) {
            text_add(why, "AZURE_FEDERATED_TOKEN_FILE is set; AZURE_CLIENT_ID and "
                          "AZURE_TENANT_ID must be, too");
            return false;
        }
        entra->assertion = secret_new(file);
        if (entra->assertion == NULL) {
            text_add(why, "memory is short");
            return false;
        }
    }
    text_init(&text, entra->endpoint, sizeof entra->endpoint);
    text_add(&text, endpoint);
    while (text.length > 0 && text.bytes[text.length - 1] == '/')
        text.bytes[--text.length] = '\0';
    entra->identity.endpoint = entra->endpoint;
    if (text.cut || !is_safe(entra->endpoint)) {
        text_add(why, "tokens of Entra ID are asked for by https:// only, or on this machine");
        return false;
    }
    return true;
}

struct entra *entra_new(struct net *net, const struct entra_site *site, struct text *why)
{
    struct entra *entra = calloc(1, sizeof *entra);
    if (entra == NULL) {
        text_add(why, "memory is short");
        return NULL;
    }
    entra->net = net;
    entra->site = *site;
    entra->again = (struct net_timer){.at_ms = NET_NEVER, .due = ask, .owner = entra};
    backoff_init(&entra->backoff, (uint64_t)host_boot_ms(), FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    if (!read_environment(entra, why)) {
        entra_free(&entra);
        return NULL;
    }
    entra->http = http_new(net);
    if (entra->http == NULL) {
        text_add(why, "memory is short");
        entra_free(&entra);
        return NULL;
    }
    plan(entra, /* pause_ms= */ 0);
    return entra;
}

void entra_free(struct entra **entra)
{
    if (*entra == NULL)
        return;
    net_call_at((*entra)->net, &(*entra)->again, NET_NEVER);
    http_free(&(*entra)->http);
    secret_free(&(*entra)->assertion);
    wipe(*entra, sizeof **entra);
    free(*entra);
    *entra = NULL;
}

const struct entra_token *entra_now(const struct entra *entra, struct text *why)
{
    if (entra->good_until_ms > 0 && host_boot_ms() < entra->good_until_ms)
        return &entra->token;
    text_add(why, entra->why);
    return NULL;
}

void entra_refused(struct entra *entra)
{
    if (entra->request == NULL)
        plan(entra, REFUSED_PAUSE_MS);
}
