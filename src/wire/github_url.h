/* SPDX-License-Identifier: Apache-2.0 */
/*
 * github://OWNER/REPO[?show=off&heartbeat=100s&stale=5m&poll=60s&pace=1s&writes=400&budget=2500
 * &token-file=PATH&app=ID&app-key-file=PATH] and the names of refs. Pure: a name depends only on
 * the key, so that every worker computes the same one.
 */
#ifndef LEASEHOLD_WIRE_GITHUB_URL_H
#define LEASEHOLD_WIRE_GITHUB_URL_H

#include "base/text.h"

#define GITHUB_KEY_REFS    "leasehold/k/" /* below refs/ */
#define GITHUB_WORKER_REFS "leasehold/w/"
/* The first byte of a hashed name. Git allows it in a ref, but not ~, ^, : or \. */
#define GITHUB_HASH_MARK "="

enum {
    GITHUB_OWNER_MAX = 39,
    GITHUB_REPO_MAX = 100,
    GITHUB_FILE_MAX = 1023,
    GITHUB_NAME_MAX = 180, /* of a ref below GITHUB_KEY_REFS; longer ones are hashed */
    GITHUB_PATH_NAME_MAX = 3 * GITHUB_NAME_MAX, /* the same in the path of a URL */
};

struct github_url {
    char owner[GITHUB_OWNER_MAX + 1], repo[GITHUB_REPO_MAX + 1];
    bool show;            /* assignee, label and comment on issues */
    int64_t heartbeat_ms; /* unless given: a third of stale */
    int64_t stale_ms;     /* a worker without a heartbeat for this long is dead */
    int64_t poll_ms;
    int64_t pace_ms; /* between two writes */
    uint32_t writes; /* of all workers of the account, in an hour */
    uint32_t budget; /* requests of this process, in an hour; 0: half of the server's limit */
    char token_file[GITHUB_FILE_MAX + 1];
    uint64_t app; /* the id of a GitHub App; 0: none */
    char app_key_file[GITHUB_FILE_MAX + 1];
};

/* `loopback`: the API is on this host, so tests may use short times (GITHUB_API_URL). False with a
 * reason in `why` if the URL is invalid. */
bool github_url_parse(const char *url, bool loopback, struct github_url *out, struct text *why);

/*
 * The name of the key's ref below refs/leasehold/k/: letters, digits, - and _ stay, every other
 * byte is %XX. A longer one is GITHUB_HASH_MARK and 40 digits of the key's SHA-256.
 */
void github_ref_name(const char *key, char out[GITHUB_NAME_MAX + 1]);
/* The key of a name that is not hashed; false if it is hashed, or the name of no key. */
bool github_ref_key(const char *name, char *key, size_t size);
/* The beginning of the names of all keys with this prefix, except hashed ones. */
void github_ref_prefix(const char *prefix, char out[GITHUB_NAME_MAX + 1]);
/* The name as a part of a URL's path: % is %25. */
void github_path_name(const char *name, char out[GITHUB_PATH_NAME_MAX + 1]);

#endif
