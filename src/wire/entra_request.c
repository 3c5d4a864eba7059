/* SPDX-License-Identifier: Apache-2.0 */
/* See entra_request.h. Its JSON support is limited to members of the outermost object. */
#include "wire/entra_request.h"

#include "wire/base64url.h"

#include <string.h>

enum { CLAIMS_MAX = 4096, LIVES_MAX_S = 30 * 24 * 3600 };

static const char audience[] = "https://redis.azure.com";

/* ---- requests ---- */

static void entra_add_escaped(struct text *out, const char *string)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char digits[] = "0123456789ABCDEF";
    for (const char *at = string; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (strchr(plain, *at) != NULL) {
            text_add_bytes(out, at, 1);
        } else {
            char code[] = {'%', digits[byte >> 4], digits[byte & 15]};
            text_add_bytes(out, code, sizeof code);
        }
    }
}

void entra_managed_url(const struct entra_identity *identity, struct text *out)
{
    text_add(out, identity->endpoint);
    text_add(out, "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=");
    entra_add_escaped(out, audience);
    if (identity->client_id != NULL && identity->client_id[0] != '\0') {
        text_add(out, "&client_id=");
        entra_add_escaped(out, identity->client_id);
    }
}

void entra_app_url(const struct entra_identity *identity, struct text *out)
{
    text_add(out, identity->endpoint);
    text_add(out, "?api-version=2019-08-01&resource=");
    entra_add_escaped(out, audience);
    if (identity->client_id != NULL && identity->client_id[0] != '\0') {
        text_add(out, "&client_id=");
        entra_add_escaped(out, identity->client_id);
    }
}

void entra_workload_url(const struct entra_identity *identity, struct text *out)
{
    text_add(out, identity->endpoint);
    text_add(out, "/");
    entra_add_escaped(out, identity->tenant_id);
    text_add(out, "/oauth2/v2.0/token");
}

void entra_workload_form(const struct entra_identity *identity, struct text *out)
{
    text_add(out, "grant_type=client_credentials&client_id=");
    entra_add_escaped(out, identity->client_id);
    text_add(out, "&scope=");
    entra_add_escaped(out, audience);
    entra_add_escaped(out, "/.default");
    if (identity->secret != NULL) {
        text_add(out, "&client_secret=");
        entra_add_escaped(out, identity->secret);
        return;
    }
    text_add(out, "&client_assertion_type=");
    entra_add_escaped(out, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    text_add(out, "&client_assertion=");
    entra_add_escaped(out, identity->assertion);
}

/* ---- assertion ---- */

bool entra_is_id(const char *string)
{
    return string[0] != '\0' && strlen(string) <= ENTRA_ID_MAX &&
           strspn(string, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-") ==
               strlen(string);
}

static void add_member(struct text *out, const char *name, const char *value)
{
    text_add(out, name);
    text_add(out, "\"");
    text_add(out, value);
    text_add(out, "\"");
}

static void entra_add_time(struct text *out, const char *name, int64_t time_s)
{
    text_add(out, name);
    text_add_i64(out, time_s);
}

/* See "Microsoft identity platform application authentication certificate credentials". */
void entra_add_claims(const struct entra_claims *claims, struct text *out)
{
    enum { LIVES_S = 300, SKEW_S = 60 };
    char string[1024], mark[64];
    struct text text;
    text_init(&text, mark, sizeof mark);
    base64url_add(claims->thumbprint, ENTRA_THUMBPRINT, &text);
    text_init(&text, string, sizeof string);
    add_member(&text, "{\"alg\":\"PS256\",\"typ\":\"JWT\",\"x5t#S256\":", mark);
    text_add(&text, "}");
    base64url_add((const unsigned char *)string, text.length, out);
    text_add(out, ".");
    text_clear(&text);
    add_member(&text, "{\"aud\":", claims->audience);
    add_member(&text, ",\"iss\":", claims->client_id);
    add_member(&text, ",\"sub\":", claims->client_id);
    add_member(&text, ",\"jti\":", claims->id);
    entra_add_time(&text, ",\"nbf\":", claims->now_s - SKEW_S);
    entra_add_time(&text, ",\"iat\":", claims->now_s);
    entra_add_time(&text, ",\"exp\":", claims->now_s + LIVES_S);
    text_add(&text, "}");
    base64url_add((const unsigned char *)string, text.length, out);
}

/* ---- replies ---- */

/* The end of the value at `at`, after its closing quote or bracket. */
static const char *end_of_value(const char *at, const char *end)
{
    unsigned depth = 0;
    bool quoted = false;
    for (; at < end; at++) {
        if (quoted && *at == '\\')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && (*at == '{' || *at == '['))
            depth++;
        else if (!quoted && depth > 0 && (*at == '}' || *at == ']'))
            depth--;
        else if (!quoted && depth == 0 && (*at == ',' || *at == '}'))
            return at;
    }
    return end;
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at) != NULL)
        at++;
    return at;
}

/* A value without trailing space and without its quotes. */
static void trim(const char *from, const char *to, const char **out, size_t *out_length)
{
    size_t length = (size_t)(to - from);
    while (length > 0 && strchr(" \t\r\n", from[length - 1]) != NULL)
        length--;
    size_t quotes = length >= 2 && from[0] == '"' ? 1 : 0; /* the closing quote is there, too */
    *out = from + quotes;
    *out_length = length - 2 * quotes;
}

/* Finds a string or number in the outermost object: its bytes, without quotes. */
static bool find_member(const char *body, size_t length, const char *name, const char **out,
                        size_t *out_length)
{
    const char *end = body + length, *at = skip_space(body, end);
    size_t wanted = strlen(name);
    if (at == end || *at != '{')
        return false;
    for (at++; (at = skip_space(at, end)) < end && *at == '"'; at++) {
        const char *close = memchr(at + 1, '"', (size_t)(end - at) - 1);
        bool is_it = close != NULL && (size_t)(close - at) - 1 == wanted &&
                     memcmp(at + 1, name, wanted) == 0;
        const char *value = close != NULL ? skip_space(close + 1, end) : end;
        if (value == end || *value != ':')
            return false;
        value = skip_space(value + 1, end);
        const char *behind = end_of_value(value, end);
        if (behind == end)
            return false;
        if (is_it) {
            trim(value, behind, out, out_length);
            return true;
        }
        at = behind;
        if (*at != ',')
            return false;
    }
    return false;
}

static int sixth_of(char letter)
{
    const char *found = letter != '\0' ? strchr(base64url_digits, letter) : NULL;
    return found != NULL ? (int)(found - base64url_digits) : -1;
}

/* The owner of a token, from its claims: the base64url part between its two dots. */
static void read_object_id(const char *token, char *out)
{
    char claims[CLAIMS_MAX];
    const char *from = strchr(token, '.'), *found;
    size_t length = 0, found_length;
    unsigned bits = 0, kept = 0;
    out[0] = '\0';
    if (from == NULL)
        return;
    for (const char *at = from + 1; sixth_of(*at) >= 0 && length < sizeof claims; at++) {
        kept = (kept << 6 | (unsigned)sixth_of(*at)) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            claims[length++] = (char)(kept >> bits & 0xff);
        }
    }
    if (find_member(claims, length, "oid", &found, &found_length) && found_length <= ENTRA_ID_MAX &&
        text_is_clean(found, found_length)) {
        memcpy(out, found, found_length);
        out[found_length] = '\0';
    }
}

static bool entra_read_number(const char *digits, size_t length, int64_t *out)
{
    int64_t number = 0;
    if (length == 0 || length > 12)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        number = number * 10 + (digits[i] - '0');
    }
    *out = number;
    return true;
}

/* The lifetime, from expires_in or expires_on. */
static bool read_life(const char *body, size_t length, int64_t now_s, int64_t *out)
{
    const char *string;
    size_t count;
    if (find_member(body, length, "expires_in", &string, &count)) {
        if (!entra_read_number(string, count, out))
            return false;
    } else if (find_member(body, length, "expires_on", &string, &count)) {
        if (!entra_read_number(string, count, out))
            return false;
        *out -= now_s;
    } else {
        return false;
    }
    return *out > 0 && *out <= LIVES_MAX_S;
}

/* True if the bytes can be a token. The token is the Redis password: it must never be logged. */
static bool entra_is_token(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (sixth_of(bytes[i]) < 0 && strchr(".+/=~", bytes[i]) == NULL)
            return false;
    return length > 0 && length <= ENTRA_TOKEN_MAX;
}

bool entra_read_token(const char *body, size_t length, int64_t now_s, struct entra_token *out)
{
    const char *token;
    size_t token_length;
    int64_t lives_s;
    bool found = find_member(body, length, "access_token", &token, &token_length) ||
                 find_member(body, length, "accessToken", &token, &token_length);
    if (!found || !entra_is_token(token, token_length) || !read_life(body, length, now_s, &lives_s))
        return false;
    memcpy(out->token, token, token_length);
    out->token[token_length] = '\0';
    out->lives_s = lives_s;
    read_object_id(out->token, out->object_id);
    return true;
}

void entra_read_error(const char *body, size_t length, struct text *out)
{
    static const char *const names[] = {"error", "error_description", "message"};
    size_t before = out->length;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *string;
        size_t string_length, shown = 0;
        if (!find_member(body, length, names[i], &string, &string_length))
            continue;
        while (shown < string_length && shown < 120 && string[shown] != '\\')
            shown++;
        text_add(out, out->length > before ? ": " : "");
        text_add_clean(out, string, shown);
    }
}
