/* SPDX-License-Identifier: Apache-2.0 */
/* See kube_config.h. A kubeconfig is YAML; it is kept as JSON. */
#include "http/kube_config.h"

#include "http/yaml_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POD_FILES "/var/run/secrets/kubernetes.io/serviceaccount/"

enum { CONFIG_MAX = 1 << 20, MEMFD_CA = 0, MEMFD_CERT, MEMFD_KEY };

static bool kube_config_fail(struct text *why, const char *string, const char *what)
{
    TEXT_JOIN(why, string, what);
    return false;
}

/* ---- YAML ---- */

/* NULL if the file does not exist, or, with a reason, if it cannot be read. */
static json_t *read_yaml(const char *path, struct text *why)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        text_add(why, errno != ENOENT ? strerror(errno) : "");
        return NULL;
    }
    json_t *json = NULL;
    char *bytes = malloc(CONFIG_MAX);
    size_t length = bytes != NULL ? fread(bytes, 1, CONFIG_MAX, file) : 0;
    if (bytes == NULL || ferror(file) || length == CONFIG_MAX) {
        text_add(why, "it cannot be read, or is too long");
    } else {
        json = yaml_to_json(bytes, length, YAML_STRINGS, why);
        explicit_bzero(bytes, length); /* it contains tokens and keys */
    }
    free(bytes);
    (void)fclose(file);
    return json;
}

/* ---- kubeconfig ---- */

static const char *string_at(const json_t *json, const char *name)
{
    const char *string = json_string_value(json_object_get(json, name));
    return string != NULL && *string != '\0' ? string : NULL;
}

/* The entry of that name in a list of {"name": …, KIND: {…}}. */
static const json_t *entry_of(const json_t *config, const char *list, const char *kind,
                              const char *name)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(config, list), index, entry)
    {
        const char *found = string_at(entry, "name");
        if (found != NULL && name != NULL && strcmp(found, name) == 0)
            return json_object_get(entry, kind);
    }
    return NULL;
}

/* If several files define a name, the first one applies, as for kubectl. */
static void merge_config(json_t *into, const json_t *from)
{
    static const char *const lists[] = {"clusters", "contexts", "users"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_t *list = json_object_get(into, lists[i]);
        if (list == NULL)
            (void)json_object_set(into, lists[i], json_object_get(from, lists[i]));
        else if (json_is_array(list) && json_is_array(json_object_get(from, lists[i])))
            (void)json_array_extend(list, json_object_get(from, lists[i]));
    }
    if (string_at(into, "current-context") == NULL)
        (void)json_object_set(into, "current-context", json_object_get(from, "current-context"));
}

/* Paths in a kubeconfig are relative to its folder. */
static void make_path_absolute(json_t *object, const char *name, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = string_at(object, name);
    if (file == NULL || *file == '/' || slash == NULL)
        return;
    json_t *whole = json_sprintf("%.*s/%s", (int)(slash - path), path, file);
    (void)json_object_set_new(object, name, whole);
}

static void make_all_absolute(const json_t *config, const char *path)
{
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(config, "clusters"), index, entry)
    {
        make_path_absolute(json_object_get(entry, "cluster"), "certificate-authority", path);
    }
    json_array_foreach(json_object_get(config, "users"), index, entry)
    {
        json_t *user = json_object_get(entry, "user"), *plugin = json_object_get(user, "exec");
        const char *command = string_at(plugin, "command");
        make_path_absolute(user, "client-certificate", path);
        make_path_absolute(user, "client-key", path);
        make_path_absolute(user, "tokenFile", path);
        if (command != NULL && strchr(command, '/') != NULL) /* a bare name is searched in PATH */
            make_path_absolute(plugin, "command", path);
    }
}

/* Skips a file that does not exist, as kubectl does, but not an invalid one. */
static json_t *read_kubeconfigs(const char *paths, struct text *why)
{
    json_t *all = NULL;
    char path[4096], string[160];
    struct text wrong;
    text_init(&wrong, string, sizeof string);
    for (size_t length = 0; *paths != '\0'; paths += length + (paths[length] == ':' ? 1 : 0)) {
        length = strcspn(paths, ":");
        (void)snprintf(path, sizeof path, "%.*s", (int)length, paths);
        json_t *one = read_yaml(path, &wrong);
        if (wrong.length > 0) {
            json_decref(all);
            text_add(why, path);
            (void)kube_config_fail(why, ": ", string);
            return NULL;
        }
        make_all_absolute(one, path);
        if (all != NULL)
            merge_config(all, one);
        else
            all = json_incref(one);
        json_decref(one);
    }
    if (all == NULL)
        (void)kube_config_fail(why, "no readable kubeconfig: ", path);
    return all;
}

/* ---- certificates ---- */

size_t kube_decode64(const char *string, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "+/-_";
    size_t length = 0;
    uint32_t bits = 0, count = 0;
    for (; *string != '\0' && strchr("=.", *string) == NULL; string++) {
        const char *digit = strchr(digits, *string);
        if (digit == NULL)
            continue; /* line breaks */
        size_t value = (size_t)(digit - digits);
        bits = bits << 6 | (uint32_t)(value < 64 ? value : value - 2);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[length++] = (char)(bits >> count & 0xff);
        }
    }
    return length;
}

char *kube_config_memfd(int *memfd, const char *bytes, size_t length)
{
    char *path = NULL;
    int file = memfd_create("leasehold", MFD_CLOEXEC);
    if (file < 0)
        return NULL;
    if (write(file, bytes, length) != (ssize_t)length ||
        asprintf(&path, "/proc/self/fd/%d", file) < 0) {
        (void)close(file);
        return NULL;
    }
    if (*memfd >= 0)
        (void)close(*memfd);
    *memfd = file;
    return path;
}

/* NAME-data takes precedence over NAME, which is a file. False when out of memory. */
static bool set_certificate(const json_t *json, const char *name, int *memfd, const char **out)
{
    char data_name[64];
    (void)snprintf(data_name, sizeof data_name, "%s-data", name);
    const char *data = string_at(json, data_name), *file = string_at(json, name);
    if (data == NULL && file == NULL)
        return true;
    if (data == NULL) {
        *out = strdup(file);
        return *out != NULL;
    }
    char *bytes = malloc(strlen(data) + 1);
    if (bytes == NULL)
        return false;
    size_t length = kube_decode64(data, bytes);
    *out = kube_config_memfd(memfd, bytes, length);
    explicit_bzero(bytes, length);
    free(bytes);
    return *out != NULL;
}

static bool set_user(struct kube_config *out, const json_t *user)
{
    const char *token = string_at(user, "token"), *file = string_at(user, "tokenFile");
    if (file != NULL)
        out->token_file = strdup(file);
    else if (token != NULL)
        out->token = strdup(token);
    out->plugin = json_incref(json_object_get(user, "exec"));
    return set_certificate(user, "client-certificate", &out->memfd[MEMFD_CERT],
                           &out->tls.cert_file) &&
           set_certificate(user, "client-key", &out->memfd[MEMFD_KEY], &out->tls.key_file) &&
           (file == NULL || out->token_file != NULL);
}

/* A field that we do not implement. To ignore it would give us another identity than configured. */
static const char *unsupported_field(const json_t *user)
{
    static const char *const names[] = {"as",       "as-uid",        "as-groups", "as-user-extra",
                                        "username", "auth-provider", NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        if (json_object_get(user, names[i]) != NULL)
            return names[i];
    }
    return NULL;
}

static bool set_context(struct kube_config *out, const json_t *config, const char *name,
                        struct text *why)
{
    if (name == NULL && (name = string_at(config, "current-context")) == NULL)
        return kube_config_fail(why, "the kubeconfig has no current-context; set ?context=", "…");
    const json_t *context = entry_of(config, "contexts", "context", name);
    if (context == NULL)
        return kube_config_fail(why, "the kubeconfig has no context ", name);
    const json_t *cluster = entry_of(config, "clusters", "cluster", string_at(context, "cluster"));
    const json_t *user = entry_of(config, "users", "user", string_at(context, "user"));
    const char *server = string_at(cluster, "server"),
               *alias = string_at(cluster, "tls-server-name");
    const char *unsafe = string_at(cluster, "insecure-skip-tls-verify");
    const char *namespace = string_at(context, "namespace");
    const char *proxy = string_at(cluster, "proxy-url");
    if (server == NULL)
        return kube_config_fail(why, "the kubeconfig names no server for the context ", name);
    if (unsafe != NULL && strcmp(unsafe, "true") == 0)
        return kube_config_fail(why,
                                "insecure-skip-tls-verify is refused (any host could pose as the ",
                                "API server); set certificate-authority instead");
    if (unsupported_field(user) != NULL)
        return kube_config_fail(
            why, "the kubeconfig's user has an unsupported field: ", unsupported_field(user));
    if (out->namespace[0] == '\0' && namespace != NULL && strlen(namespace) <= K8S_NAME_MAX)
        text_copy(out->namespace, sizeof out->namespace, namespace);
    out->server = strdup(server);
    out->tls.on = strncmp(server, "https:", 6) == 0;
    out->tls.name = alias != NULL ? strdup(alias) : NULL;
    out->proxy = proxy != NULL ? strdup(proxy) : NULL;
    if (out->server == NULL || (alias != NULL && out->tls.name == NULL) ||
        (proxy != NULL && out->proxy == NULL) ||
        !set_certificate(cluster, "certificate-authority", &out->memfd[MEMFD_CA],
                         &out->tls.ca_file) ||
        (user != NULL && !set_user(out, user)))
        return kube_config_fail(why, "out of memory", "");
    return true;
}

static bool load_kubeconfig(struct kube_config *out, const char *paths, const char *context,
                            struct text *why)
{
    json_t *config = read_kubeconfigs(paths, why);
    if (config == NULL)
        return false;
    bool good = set_context(out, config, *context != '\0' ? context : NULL, why);
    json_decref(config);
    return good;
}

/* ---- service account of a pod ---- */

static void read_namespace(char *out, size_t size)
{
    FILE *file = fopen(POD_FILES "namespace", "re");
    if (file == NULL)
        return;
    if (fgets(out, (int)size, file) != NULL)
        out[strcspn(out, "\r\n")] = '\0';
    (void)fclose(file);
}

static bool load_pod(struct kube_config *out, const char *host, struct text *why)
{
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    bool six = strchr(host, ':') != NULL;
    if (asprintf(&out->server, "https://%s%s%s:%s", six ? "[" : "", host, six ? "]" : "",
                 port != NULL ? port : "443") < 0)
        out->server = NULL;
    out->tls.on = true;
    out->tls.ca_file = strdup(POD_FILES "ca.crt");
    out->token_file = strdup(POD_FILES "token");
    if (out->namespace[0] == '\0')
        read_namespace(out->namespace, sizeof out->namespace);
    return (out->server != NULL && out->tls.ca_file != NULL && out->token_file != NULL) ||
           kube_config_fail(why, "out of memory", "");
}

/* ---- load ---- */

static bool kube_config_find(struct kube_config *out, const struct k8s_url *url, struct text *why)
{
    const char *paths = getenv("KUBECONFIG"), *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *home = getenv("HOME");
    char usual[1024];
    if (paths != NULL && *paths != '\0')
        return load_kubeconfig(out, paths, url->context, why);
    if (host != NULL && access(POD_FILES "token", R_OK) == 0)
        return load_pod(out, host, why);
    (void)snprintf(usual, sizeof usual, "%s/.kube/config", home != NULL ? home : "");
    return load_kubeconfig(out, usual, url->context, why);
}

bool kube_config_load(struct kube_config *out, const struct k8s_url *url, struct text *why)
{
    struct kube_config config = {.memfd = {-1, -1, -1}};
    const char *pod = getenv("POD_NAMESPACE");
    text_copy(config.namespace, sizeof config.namespace, url->namespace);
    if (!kube_config_find(&config, url, why)) {
        kube_config_done(&config);
        return false;
    }
    if (config.namespace[0] == '\0')
        (void)snprintf(config.namespace, sizeof config.namespace, "%s",
                       pod != NULL && *pod != '\0' ? pod : "default");
    size_t length = strlen(config.server);
    while (length > 0 && config.server[length - 1] == '/')
        config.server[--length] = '\0';
    *out = config;
    return true;
}

static void free_string(const char *string)
{
    char *own;
    memcpy(&own, &string, sizeof own); /* we own it, despite the const */
    free(own);
}

void kube_config_done(struct kube_config *config)
{
    if (config->token != NULL)
        explicit_bzero(config->token, strlen(config->token));
    free(config->token);
    free(config->server);
    free(config->proxy);
    free(config->token_file);
    json_decref(config->plugin);
    free_string(config->tls.ca_file);
    free_string(config->tls.cert_file);
    free_string(config->tls.key_file);
    free_string(config->tls.name);
    for (size_t i = 0; i < sizeof config->memfd / sizeof config->memfd[0]; i++) {
        if (config->memfd[i] >= 0)
            (void)close(config->memfd[i]);
    }
    *config = (struct kube_config){.memfd = {-1, -1, -1}};
}
