/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_login.h. A plugin prints an ExecCredential of client.authentication.k8s.io. */
#include "http/kube_login.h"

#include "base/check.h"
#include "net/credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOGIN_MAGIC = 0x109,
    ARGS_MAX = 32, /* arguments, and environment variables of its own */
};

struct kube_login {
    uint32_t magic;
    struct kube_config *config;
    char name[96]; /* of the plugin */
    struct credential_program plugin;
    struct credential credential;
    void (*ready)(void *owner);
    void *owner;
};

/* ---- output of the plugin ---- */

static int64_t expires_ms(const json_t *status)
{
    struct tm tm = {0};
    const char *string = json_string_value(json_object_get(status, "expirationTimestamp"));
    const char *end = string != NULL ? strptime(string, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (end == NULL)
        return CREDENTIAL_NEVER;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    (void)strptime(end, "%z", &tm); /* "Z", or the offset of the time zone */
    int64_t ahead_s = tm.tm_gmtoff; /* timegm() would overwrite it */
    return ((int64_t)timegm(&tm) - ahead_s) * 1000;
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

static bool login_read_output(void *owner, const char *output, size_t length, char **out_value,
                              int64_t *out_expires_ms)
{
    struct kube_config *config = ((struct kube_login *)owner)->config;
    json_t *json = json_loadb(output, length, 0, NULL);
    const json_t *status = json_object_get(json, "status");
    const char *token = json_string_value(json_object_get(status, "token"));
    bool found = token != NULL || json_object_get(status, "clientCertificateData") != NULL;
    if (found) {
        *out_value = token != NULL ? strdup(token) : NULL;
        *out_expires_ms = expires_ms(status);
        login_set_certificate(status, "clientCertificateData", &config->memfd[1],
                              &config->tls.cert_file);
        login_set_certificate(status, "clientKeyData", &config->memfd[2], &config->tls.key_file);
    }
    json_decref(json);
    return found;
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

static bool login_start_plugin(void *owner, struct credential_helper *helper)
{
    const json_t *plugin = ((struct kube_login *)owner)->config->plugin;
    const char *argv[ARGS_MAX + 2] = {json_string_value(json_object_get(plugin, "command"))};
    char **environment = make_environment(plugin);
    copy_args(json_object_get(plugin, "args"), argv + 1);
    bool good = argv[0] != NULL && environment != NULL &&
                credential_helper_start(helper, argv, environment) == 0;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        free(environment[i]);
    free(environment);
    return good;
}

/* ---- interface ---- */

static void login_on_ready(void *owner)
{
    struct kube_login *login = owner;
    login->ready(login->owner);
}

struct kube_login *kube_login_new(struct poller *poller, struct kube_config *config,
                                  void (*ready)(void *owner), void *owner)
{
    struct kube_login *login = calloc(1, sizeof *login);
    if (login == NULL)
        return NULL;
    const char *command = json_string_value(json_object_get(config->plugin, "command"));
    *login =
        (struct kube_login){.magic = LOGIN_MAGIC, .config = config, .ready = ready, .owner = owner};
    (void)snprintf(login->name, sizeof login->name, "the credential plugin %.60s",
                   command != NULL ? command : "");
    login->plugin = (struct credential_program){.name = login->name,
                                                .start = login_start_plugin,
                                                .read = login_read_output,
                                                .ready = login_on_ready,
                                                .owner = login};
    struct credential_source source = {.program = config->plugin != NULL ? &login->plugin : NULL,
                                       .file = config->token_file,
                                       .fixed = config->token};
    if (!credential_init(&login->credential, poller, &source))
        kube_login_free(&login);
    return login;
}

void kube_login_free(struct kube_login **login_pointer)
{
    struct kube_login *login = *login_pointer;
    if (login == NULL)
        return;
    ASSERT(login->magic == LOGIN_MAGIC);
    credential_done(&login->credential);
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
    return credential_ready(&login->credential);
}

bool kube_login_bearer(struct kube_login *login, const char **out, struct text *why)
{
    return credential_now(&login->credential, out, why);
}

void kube_login_refused(struct kube_login *login)
{
    credential_refused(&login->credential);
}
