/* SPDX-License-Identifier: Apache-2.0 */
/* See credential.h. */
#include "net/credential.h"

#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RENEW_BEFORE_MS = 60000,
    FAILED_FOR_MS = 1000, /* minimum interval between two runs */
};

static void credential_drop(struct credential *credential)
{
    if (credential->value != NULL)
        explicit_bzero(credential->value, strlen(credential->value));
    free(credential->value);
    credential->value = NULL;
}

/* ---- program ---- */

/* When to run the program again. A credential that has expired by our clock may still be valid by
 * the server's. */
static int64_t renew_at_ms(int64_t expires_ms)
{
    if (expires_ms == CREDENTIAL_NEVER)
        return POLLER_NEVER;
    int64_t left_ms = expires_ms - host_wall_ms();
    int64_t early_ms = left_ms / 2 < RENEW_BEFORE_MS ? left_ms / 2 : RENEW_BEFORE_MS;
    left_ms = left_ms - early_ms > FAILED_FOR_MS ? left_ms - early_ms : FAILED_FOR_MS;
    return host_boot_ms() + left_ms;
}

static void credential_set_error(struct credential *credential, const char *error)
{
    credential->known = true;
    credential->error[0] = '\0';
    if (error == NULL)
        return;
    (void)snprintf(credential->error, sizeof credential->error, "%.96s %s",
                   credential->source.program->name, error);
    credential->good_until_ms = host_boot_ms() + FAILED_FOR_MS;
}

static void credential_on_output(void *owner, const char *output, size_t length, const char *error)
{
    struct credential *credential = owner;
    const struct credential_program *program = credential->source.program;
    char *value = NULL;
    int64_t expires_ms = CREDENTIAL_NEVER;
    if (error == NULL && !program->read(program->owner, output, length, &value, &expires_ms))
        error = "returned no credential";
    if (error == NULL) {
        credential_drop(credential);
        credential->value = value;
        credential->good_until_ms = renew_at_ms(expires_ms);
    }
    credential_set_error(credential, error);
    program->ready(program->owner);
}

bool credential_ready(struct credential *credential)
{
    const struct credential_program *program = credential->source.program;
    if (program == NULL || (credential->known && host_boot_ms() < credential->good_until_ms))
        return true;
    if (credential->helper.child > 0)
        return false;
    credential->known = false;
    if (program->start(program->owner, &credential->helper))
        return false;
    credential_set_error(credential, "cannot be started");
    return true;
}

/* ---- all sources ---- */

bool credential_init(struct credential *credential, struct poller *poller,
                     const struct credential_source *source)
{
    *credential = (struct credential){.source = *source};
    if (source->program != NULL)
        credential_helper_init(&credential->helper, poller, credential_on_output, credential);
    else if (source->file != NULL)
        credential->file = secret_new(source->file);
    return source->program != NULL || source->file == NULL || credential->file != NULL;
}

void credential_done(struct credential *credential)
{
    if (credential->source.program != NULL)
        credential_helper_done(&credential->helper);
    secret_free(&credential->file);
    credential_drop(credential);
}

bool credential_now(struct credential *credential, const char **out, struct text *why)
{
    const struct credential_source *source = &credential->source;
    *out = source->fixed;
    if (source->program != NULL) {
        bool runs = credential->helper.child > 0;
        *out = credential->value;
        TEXT_JOIN(why, runs ? source->program->name : credential->error,
                  runs ? " has not returned yet" : "");
        return !runs && credential->error[0] == '\0';
    }
    if (credential->file != NULL)
        return (*out = secret_now(credential->file, host_boot_ms(), why)) != NULL;
    if (source->variable == NULL)
        return true;
    *out = getenv(source->variable);
    if (*out != NULL && (*out)[0] != '\0')
        return true;
    TEXT_JOIN(why, "the environment variable ", source->variable, " is not set");
    return false;
}

void credential_refused(struct credential *credential)
{
    if (credential->file != NULL)
        secret_refused(credential->file);
    if (credential->helper.child == 0)
        credential->good_until_ms = 0;
}
