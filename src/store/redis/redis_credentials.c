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
    struct credential_source source = {
        .file = url->password_file[0] != '\0' ? url->password_file : NULL, .fixed = url->password};
    return credential_init(&credentials->password, poller, &source) ||
           url_refuse(why, "out of memory");
}

void credentials_done(struct credentials *credentials)
{
    credential_done(&credentials->password);
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

enum credentials_result credentials_now(struct credentials *credentials, const char **out_user,
                                        const char **out_password, struct text *why)
{
    const struct redis_url *url = credentials->url;
    if (credentials->entra != NULL)
        return entra_credentials(credentials, out_user, out_password, why);
    *out_user = url->user[0] != '\0' ? url->user : "default";
    return credential_now(&credentials->password, out_password, why) ? CREDENTIALS_OK
                                                                     : CREDENTIALS_WRONG;
}

void credentials_refused(struct credentials *credentials)
{
    credential_refused(&credentials->password);
    if (credentials->entra != NULL)
        entra_refused(credentials->entra);
}
