/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_credentials.h. */
#include "store/redis/redis_credentials.h"

#include <string.h>

static void notify_users(void *owner)
{
    struct credentials *credentials = owner;
    for (struct list_node *node = credentials->users.first, *next; node != NULL; node = next) {
        struct credentials_user *user = LIST_ENTRY(node, struct credentials_user, node);
        next = node->next;
        user->changed(user);
    }
}

bool credentials_init(struct credentials *credentials, const struct redis_url *url,
                      struct poller *poller, struct text *why)
{
    *credentials = (struct credentials){.url = url};
    if (url->auth[0] != '\0') {
        struct entra_callbacks callbacks = {.changed = notify_users, .owner = credentials};
        struct entra_choice choice = {.client_id =
                                          url->client_id[0] != '\0' ? url->client_id : NULL,
                                      .cli = strcmp(url->auth, "entra-cli") == 0};
        credentials->entra = entra_new(poller, &callbacks, &choice, why);
        return credentials->entra != NULL;
    }
    if (url->password_file[0] == '\0')
        return true;
    credentials->file = secret_new(url->password_file);
    if (credentials->file == NULL)
        text_add(why, "out of memory");
    return credentials->file != NULL;
}

void credentials_done(struct credentials *credentials)
{
    secret_free(&credentials->file);
    entra_free(&credentials->entra);
}

static enum credentials_result entra_credentials(const struct credentials *credentials,
                                                 const char **out_user, const char **out_password,
                                                 struct text *why)
{
    const char *named = credentials->url->user;
    size_t before = why->length;
    const struct entra_token *token = entra_now(credentials->entra, why);
    if (token == NULL)
        return why->length > before ? CREDENTIALS_TROUBLE : CREDENTIALS_PENDING;
    *out_user = named[0] != '\0' ? named : token->object_id;
    *out_password = token->token;
    if ((*out_user)[0] != '\0')
        return CREDENTIALS_OK;
    text_add(why, "the Entra ID token names no user; set the user in the URL");
    return CREDENTIALS_WRONG;
}

enum credentials_result credentials_now(struct credentials *credentials, int64_t now_ms,
                                        const char **out_user, const char **out_password,
                                        struct text *why)
{
    const struct redis_url *url = credentials->url;
    const char *password = url->password;
    if (credentials->entra != NULL)
        return entra_credentials(credentials, out_user, out_password, why);
    if (credentials->file != NULL)
        password = secret_now(credentials->file, now_ms, why);
    if (password == NULL)
        return CREDENTIALS_WRONG;
    *out_user = url->user[0] != '\0' ? url->user : "default";
    *out_password = password;
    return CREDENTIALS_OK;
}

void credentials_refused(struct credentials *credentials)
{
    if (credentials->file != NULL)
        secret_refused(credentials->file);
    if (credentials->entra != NULL)
        entra_refused(credentials->entra);
}
