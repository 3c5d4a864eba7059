/* SPDX-License-Identifier: Apache-2.0 */
/* See credentials.h. */
#include "store/redis/credentials.h"

bool credentials_init(struct credentials *credentials, const struct redis_url *url,
                      struct text *why)
{
    *credentials = (struct credentials){.url = url};
    if (url->auth[0] != '\0') {
        text_add(why, "?auth=entra is not built in");
        return false;
    }
    if (url->password_file[0] == '\0')
        return true;
    credentials->file = secret_new(url->password_file);
    if (credentials->file == NULL)
        text_add(why, "memory is short");
    return credentials->file != NULL;
}

void credentials_done(struct credentials *credentials)
{
    secret_free(&credentials->file);
}

bool credentials_now(struct credentials *credentials, int64_t now_ms, const char **out_user,
                     const char **out_password, struct text *why)
{
    const struct redis_url *url = credentials->url;
    const char *password = url->password;
    if (credentials->file != NULL)
        password = secret_now(credentials->file, now_ms, why);
    if (password == NULL)
        return false;
    *out_user = url->user[0] != '\0' ? url->user : "default";
    *out_password = password;
    return true;
}

void credentials_refused(struct credentials *credentials)
{
    if (credentials->file != NULL)
        secret_refused(credentials->file);
}
