/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_login.h. A plugin prints an ExecCredential of client.authentication.k8s.io. */
#include "http/kube_login.h"

#include "base/check.h"
#include "net/credential_helper.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOGIN_MAGIC = 0x109,
    ARGS_MAX = 32, /* arguments, and environment variables of its own */
    RENEW_BEFORE_MS = 60000,
    FAILED_FOR_MS = 1000, /* minimum interval between two runs */
};

struct kube_login {
    uint32_t magic;
    struct kube_config *config;
    void (*ready)(void *owner);
    void *owner;
    struct credential_helper helper; /* the plugin */
    char *token;
    bool known;            /* the plugin has returned … */
    int64_t good_until_ms; /* … and its result is valid until then */
    char error[160];       /* of the last run; empty: none */
};

static void login_drop_token(struct kube_login *login)
{
    if (login->token != NULL)
        explicit_bzero(login->token, strlen(login->token));
    free(login->token);
    login->token = NULL;
}

/* ---- output of the plugin ---- */

static int64_t expires_ms(const json_t *status)
{
    struct tm tm = {0};
    const char *string = json_string_value(json_object_get(status, "expirationTimestamp"));
    const char *end = string != NULL ? strptime(string, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (end == NULL)
        return POLLER_NEVER;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    (void)strptime(end, "%z", &tm); /* "Z", or the offset of the time zone */
    int64_t ahead_s = tm.tm_gmtoff; /* timegm() would overwrite it */
    int64_t left_ms = ((int64_t)timegm(&tm) - ahead_s) * 1000 - host_wall_ms();
    int64_t early_ms = left_ms / 2 < RENEW_BEFORE_MS ? left_ms / 2 : RENEW_BEFORE_MS;
    /* A credential that has expired by our clock may still be valid by the server's. */
    left_ms = left_ms - early_ms > FAILED_FOR_MS ? left_ms - early_ms : FAILED_FOR_MS;
    return host_boot_ms() + left_ms;
}

static void login_set_certificate(const json_t *status, const char *name, int *memfd,
                                  const char **out)
{
    const char *string = json_string_value(json_object_get(status, name));
    char *path = string != NULL ? kube_config_memfd(memfd, string, strlen(string)) : NULL;
    char *before;
    if (path == NULL)
        return;
    memcpy(&before, out, sizeof before); /* we own it, despite the const */
    free(before);
    *out = path;
}

/* False if it contains no credential. */
static bool login_read_output(struct kube_login *login, const char *output, size_t length)
{
    json_t *json = json_loadb(output, length, 0, NULL);
    const json_t *status = json_object_get(json, "status");
    const char *token = json_string_value(json_object_get(status, "token"));
    bool certified = json_object_get(status, "clientCertificateData") != NULL;
    if (token != NULL || certified) {
        login_drop_token(login);
        login->token = token != NULL ? strdup(token) : NULL;
        login->good_until_ms = expires_ms(status);
        login_set_certificate(status, "clientCertificateData", &login->config->memfd[1],
                              &login->config->tls.cert_file);
        login_set_certificate(status, "clientKeyData", &login->config->memfd[2],
                              &login->config->tls.key_file);
    }
    json_decref(json);
    return token != NULL || certified;
}

static void login_on_output(void *owner, const char *output, size_t length, const char *error)
{
    struct kube_login *login = owner;
    login->error[0] = '\0';
    if (error == NULL && !login_read_output(login, output, length))
        error = "returned no credential";
    if (error != NULL) {
        const char *name = json_string_value(json_object_get(login->config->plugin, "command"));
        (void)snprintf(login->error, sizeof login->error, "the credential plugin %.60s %s",
                       name != NULL ? name : "", error);
        login->good_until_ms = host_boot_ms() + FAILED_FOR_MS;
    }
    login->known = true;
    login->ready(login->owner);
}

/* ---- plugin process ---- */

/* The strings still belong to the configuration. */
static void copy_args(const json_t *list, const char **out)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list) && count < ARGS_MAX; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text != NULL)
            out[count++] = text;
    }
}

static bool is_set(char *const *environment, size_t count, const char *pair)
{
    size_t length = strcspn(pair, "=") + 1;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environment[i], pair, length) == 0)
            return true;
    }
    return false;
}

/* The variables of the kubeconfig, KUBERNETES_EXEC_INFO, and the rest of our environment. No name
 * twice: of two values shells use the last, other programs the first. */
static char **make_environment(const json_t *plugin)
{
    size_t index, count = 0, ours = 0;
    const json_t *pair;
    const char *version = json_string_value(json_object_get(plugin, "apiVersion"));
    while (environ[ours] != NULL)
        ours++;
    char **out = calloc(ours + ARGS_MAX + 2, sizeof *out);
    if (out == NULL)
        return NULL;
    json_array_foreach(json_object_get(plugin, "env"), index, pair)
    {
        const char *name = json_string_value(json_object_get(pair, "name"));
        const char *value = json_string_value(json_object_get(pair, "value"));
        if (index < ARGS_MAX && name != NULL && value != NULL &&
            asprintf(&out[count], "%s=%s", name, value) > 0)
            count++;
    }
    if (asprintf(&out[count],
                 "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\","
                 "\"spec\":{\"interactive\":false}}",
                 version != NULL ? version : "client.authentication.k8s.io/v1") > 0)
        count++;
    for (size_t i = 0, own = count; i < ours; i++) {
        if (!is_set(out, own, environ[i]) && (out[count] = strdup(environ[i])) != NULL)
            count++;
    }
    return out;
}

static bool login_start_plugin(struct kube_login *login)
{
    const json_t *plugin = login->config->plugin;
    const char *argv[ARGS_MAX + 2] = {json_string_value(json_object_get(plugin, "command"))};
    char **environment = make_environment(plugin);
    copy_args(json_object_get(plugin, "args"), argv + 1);
    bool good = argv[0] != NULL && environment != NULL &&
                credential_helper_start(&login->helper, argv, environment) == 0;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        free(environment[i]);
    free(environment);
    return good;
}

/* ---- interface ---- */

struct kube_login *kube_login_new(struct poller *poller, struct kube_config *config,
                                  void (*ready)(void *owner), void *owner)
{
    struct kube_login *login = calloc(1, sizeof *login);
    if (login == NULL)
        return NULL;
    *login =
        (struct kube_login){.magic = LOGIN_MAGIC, .config = config, .ready = ready, .owner = owner};
    credential_helper_init(&login->helper, poller, login_on_output, login);
    return login;
}

void kube_login_free(struct kube_login **login_pointer)
{
    struct kube_login *login = *login_pointer;
    if (login == NULL)
        return;
    ASSERT(login->magic == LOGIN_MAGIC);
    credential_helper_done(&login->helper);
    login_drop_token(login);
    free(login);
    *login_pointer = NULL;
}

const struct kube_config *kube_login_config(const struct kube_login *login)
{
    return login->config;
}

bool kube_login_ready(struct kube_login *login)
{
    ASSERT(login->magic == LOGIN_MAGIC);
    if (login->config->plugin == NULL || (login->known && host_boot_ms() < login->good_until_ms))
        return true;
    if (login->helper.child > 0)
        return false;
    login->known = false;
    if (login_start_plugin(login))
        return false;
    (void)snprintf(login->error, sizeof login->error, "the credential plugin cannot be started");
    login->known = true;
    login->good_until_ms = host_boot_ms() + FAILED_FOR_MS;
    return true;
}

bool kube_login_bearer(struct kube_login *login, const char **out, struct text *why)
{
    struct kube_config *config = login->config;
    *out = config->token;
    if (config->plugin != NULL) {
        *out = login->token;
        text_add(why, login->helper.child > 0 ? "the credential plugin has not returned yet"
                                              : login->error);
        return login->helper.child == 0 && login->error[0] == '\0';
    }
    if (config->token_file != NULL) {
        *out = secret_now(config->token_file, host_boot_ms(), why);
        return *out != NULL;
    }
    return true;
}

void kube_login_refused(struct kube_login *login)
{
    if (login->config->token_file != NULL)
        secret_refused(login->config->token_file);
    if (login->helper.child == 0)
        login->good_until_ms = 0;
}
