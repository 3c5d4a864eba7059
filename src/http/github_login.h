/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token for GitHub: of GITHUB_TOKEN, GH_TOKEN or a file; or of an installation of a GitHub App,
 * requested with the App's key and renewed before it expires. Never shown. Does not block.
 */
#ifndef LEASEHOLD_HTTP_GITHUB_LOGIN_H
#define LEASEHOLD_HTTP_GITHUB_LOGIN_H

#include "http/json_api.h"
#include "wire/github_url.h"

#define GITHUB_ACCEPT  "Accept: application/vnd.github+json"
#define GITHUB_VERSION "X-GitHub-Api-Version: 2022-11-28"

struct github_login;

/* `server` and `tls` must stay valid. `changed` follows each time a token was requested. NULL with
 * a reason if there is no token. */
struct github_login *github_login_new(struct poller *poller, const struct github_url *url,
                                      const char *server, const struct stream_tls *tls,
                                      void (*changed)(void *owner), void *owner, struct text *why);
void github_login_free(struct github_login **login); /* accepts NULL */
/* The same number for all logins of this process with the same server and token. */
uint64_t github_login_account(struct github_login *login);
/* For json_api.h. */
struct json_login github_login_source(struct github_login *login);
/* Replaces the token in a text of the server. */
void github_login_hide(struct github_login *login, char *text);

#endif
