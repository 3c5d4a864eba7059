/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See credentials.h. A presented secret is looked up by its digest, so neither the time of a lookup
 * nor its result depends on how much of a secret was right.
 */
#include "face/daemon/credentials.h"

#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_DIGEST "sha256:"
#define SECRET_UID    "uid:"
#define SECRET_CERT   "cert:"

enum { PREFIX_MAX = 512 }; /* bytes of a key */

struct credentials {
    struct table by_id;
    struct list logins;
    size_t lines;
};

/* ---- memory ---- */

static struct credentials *credentials_new(void)
{
    struct credentials *credentials = calloc(1, sizeof *credentials);
    if (credentials != NULL && table_init(&credentials->by_id))
        return credentials;
    free(credentials);
    return NULL;
}

static void login_free(struct login *login)
{
    for (size_t i = 0; i < login->identity.right_count; i++)
        free(login->prefixes[i]);
    free(login);
}

void credentials_free(struct credentials **credentials_pointer)
{
    struct credentials *credentials = *credentials_pointer;
    if (credentials == NULL)
        return;
    for (struct list_node *node; (node = list_pop(&credentials->logins)) != NULL;)
        login_free(LIST_ENTRY(node, struct login, node));
    table_done(&credentials->by_id);
    free(credentials);
    *credentials_pointer = NULL;
}

size_t credentials_count(const struct credentials *credentials)
{
    return credentials->by_id.count;
}

/* NULL when out of memory. */
static struct login *credentials_add(struct credentials *credentials, const char *name,
                                     const char *id)
{
    struct login *login = calloc(1, sizeof *login);
    if (login == NULL)
        return NULL;
    text_copy(login->name, sizeof login->name, name);
    text_copy(login->id, sizeof login->id, id);
    login->identity = (struct may_identity){.name = login->name, .rights = login->rights};
    table_put(&credentials->by_id, &login->by_id, login->id);
    list_append(&credentials->logins, &login->node);
    return login;
}

static struct login *credentials_find(const struct credentials *credentials, const char *id)
{
    struct table_node *node = table_find(&credentials->by_id, id);
    return node != NULL ? (struct login *)node : NULL;
}

/* ---- the words of a line: each function returns NULL, or what is wrong ---- */

static const char out_of_memory[] = "out of memory";

static const char *name_check(const char *name)
{
    size_t length = strlen(name);
    bool valid = length <= CREDENTIALS_NAME_MAX;
    for (size_t i = 0; i < length && valid; i++)
        valid = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                (name[i] >= '0' && name[i] <= '9') || strchr("._-", name[i]) != NULL;
    if (!valid)
        return "the name must have 1 to 64 letters, digits, dots, underscores and hyphens";
    return strcmp(name, "default") == 0 ? "the name default is reserved; choose another" : NULL;
}

static bool secret_is_digest(const char *hex)
{
    return strlen(hex) == SHA256_HEX && strspn(hex, "0123456789abcdefABCDEF") == SHA256_HEX;
}

/* The result of a command that hashes an unset variable. */
static bool secret_is_empty(const char *id)
{
    char hex[SHA256_HEX + 1];
    sha256_hex("", 0, hex);
    return strcmp(id + strlen(SECRET_DIGEST), hex) == 0;
}

/* A user id without leading zeros; 4294967295 is none. */
static bool secret_is_uid(const char *digits)
{
    size_t length = strlen(digits);
    uint64_t number = 0;
    if (length == 0 || length > 10 || strspn(digits, "0123456789") != length ||
        (digits[0] == '0' && length > 1))
        return false;
    for (size_t i = 0; i < length; i++)
        number = number * 10 + (uint64_t)(digits[i] - '0');
    return number < UINT32_MAX;
}

/* Writes the id of the login. */
static const char *secret_read(const char *name, const char *secret, char out[CREDENTIALS_ID_SIZE])
{
    struct text text;
    text_init(&text, out, CREDENTIALS_ID_SIZE);
    if (strcmp(secret, "cert") == 0) {
        TEXT_JOIN(&text, SECRET_CERT, name);
        return NULL;
    }
    bool digest = strncmp(secret, SECRET_DIGEST, strlen(SECRET_DIGEST)) == 0 &&
                  secret_is_digest(secret + strlen(SECRET_DIGEST));
    if (!digest && (strncmp(secret, SECRET_UID, strlen(SECRET_UID)) != 0 ||
                    !secret_is_uid(secret + strlen(SECRET_UID))))
        return "the secret must be sha256: and 64 hex digits, uid: and a user id, or cert";
    text_add(&text, secret);
    for (char *at = out; *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'F' ? *at - 'A' + 'a' : *at);
    return digest && secret_is_empty(out) ? "this is the digest of an empty secret" : NULL;
}

static const char *verbs_read(const char *word, unsigned *out)
{
    static const struct {
        const char *name;
        unsigned verbs;
    } names[] = {{"read", MAY_READ},
                 {"take", MAY_TAKE},
                 {"renew", MAY_RENEW},
                 {"operate", MAY_OPERATE},
                 {"all", MAY_READ | MAY_TAKE | MAY_RENEW | MAY_OPERATE}};
    enum { NAMES = sizeof names / sizeof names[0] };
    *out = 0;
    for (const char *at = word;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < NAMES &&
               (strlen(names[i].name) != length || strncmp(at, names[i].name, length) != 0))
            i++;
        if (i == NAMES)
            return "the verbs must be all, or some of read, take, renew and operate, separated by "
                   "commas";
        *out |= names[i].verbs;
        at += length;
        if (*at == '\0')
            return NULL;
    }
}

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    char lower = (char)(digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit);
    const char *at = lower != '\0' ? strchr(digits, lower) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes %XX. Refuses what would look like a pattern or like a comment at the end of a line. */
static const char *prefix_read(const char *word, char out[PREFIX_MAX + 1])
{
    static const char wrong[] =
        "a prefix must be * for all keys, or at most 512 bytes of text; "
        "write a space as %20, a percent sign as %25, an asterisk as %2A, a "
        "# at its start as %23";
    size_t length = 0;
    bool all = strcmp(word, "*") == 0;
    for (const char *at = all ? "" : word; *at != '\0'; at++) {
        int byte = (unsigned char)*at;
        if (*at == '*' || (*at == '#' && at == word) || length == PREFIX_MAX)
            return wrong;
        if (*at == '%') {
            int high = hex_digit(at[1]), low = high >= 0 ? hex_digit(at[2]) : -1;
            if (low < 0)
                return wrong;
            byte = high * 16 + low;
            at += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return wrong; /* no key contains it */
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return NULL;
}

static const char *login_add_right(struct login *login, unsigned verbs, const char *prefix)
{
    size_t count = login->identity.right_count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(login->rights[i].prefix, prefix) == 0) {
            login->rights[i].verbs |= verbs;
            return NULL;
        }
    }
    if (count == CREDENTIALS_PREFIXES_MAX)
        return "a name with its secret has at most 64 prefixes";
    char *copy = strdup(prefix);
    if (copy == NULL)
        return out_of_memory;
    login->prefixes[count] = copy;
    login->rights[count] = (struct may_right){.verbs = verbs, .prefix = copy};
    login->identity.right_count++;
    return NULL;
}

/* ---- lines ---- */

static const char blanks[] = " \t";

/* The next word, which is ended with NUL; NULL: there is none. */
static char *line_next(char **at)
{
    char *word = *at + strspn(*at, blanks);
    if (*word == '\0')
        return NULL;
    char *end = word + strcspn(word, blanks);
    *at = end + (*end != '\0' ? 1 : 0);
    *end = '\0';
    return word;
}

static const char *login_add_rights(struct login *login, unsigned verbs, char *at)
{
    char prefix[PREFIX_MAX + 1];
    const char *wrong = NULL;
    for (char *word; wrong == NULL && (word = line_next(&at)) != NULL;) {
        wrong = prefix_read(word, prefix);
        if (wrong == NULL)
            wrong = login_add_right(login, verbs, prefix);
    }
    return wrong;
}

static const char *credentials_add_line(struct credentials *credentials, char *line)
{
    char *at = line, id[CREDENTIALS_ID_SIZE];
    const char *name = line_next(&at), *secret = line_next(&at), *words = line_next(&at);
    unsigned verbs = 0;
    if (name == NULL || name[0] == '#')
        return NULL;
    if (++credentials->lines > CREDENTIALS_LINES_MAX)
        return "the file has more than 1000 lines";
    if (words == NULL || at[strspn(at, blanks)] == '\0')
        return "expected NAME SECRET VERBS PREFIX...";
    const char *wrong = name_check(name);
    if (wrong == NULL)
        wrong = secret_read(name, secret, id);
    if (wrong == NULL)
        wrong = verbs_read(words, &verbs);
    if (wrong != NULL)
        return wrong;
    struct login *login = credentials_find(credentials, id);
    if (login != NULL && strcmp(login->name, name) != 0)
        return "another name above has the same secret or user id";
    if (login == NULL)
        login = credentials_add(credentials, name, id);
    return login != NULL ? login_add_rights(login, verbs, at) : out_of_memory;
}

/* Copies the line. */
static const char *line_copy(const char *from, size_t length, char out[CREDENTIALS_LINE_MAX + 1])
{
    if (length > 0 && from[length - 1] == '\r')
        length--;
    if (length > CREDENTIALS_LINE_MAX)
        return "the line is longer than 1024 bytes";
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char)from[i] < ' ' && from[i] != '\t') || from[i] == 0x7f)
            return "the line contains a control character";
    }
    memcpy(out, from, length);
    out[length] = '\0';
    return NULL;
}

struct credentials *credentials_parse(const char *path, const char *text, size_t length,
                                      struct text *why)
{
    struct credentials *credentials = credentials_new();
    const char *wrong = credentials == NULL ? out_of_memory : NULL;
    char line[CREDENTIALS_LINE_MAX + 1];
    uint64_t number = 0;
    for (size_t at = 0; at < length && wrong == NULL; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t size = end != NULL ? (size_t)(end - text) - at : length - at;
        wrong = line_copy(text + at, size, line);
        if (wrong == NULL)
            wrong = credentials_add_line(credentials, line);
        at += size + 1;
    }
    explicit_bzero(line, sizeof line);
    if (wrong == NULL && credentials_count(credentials) > 0)
        return credentials;
    credentials_free(&credentials);
    TEXT_JOIN(why, path, ":");
    if (wrong != NULL) {
        text_add_u64(why, number);
        TEXT_JOIN(why, ": ", wrong);
    } else {
        text_add(why, " it contains no credential; a line is NAME SECRET VERBS PREFIX...");
    }
    return NULL;
}

/* ---- the file ---- */

/* As PostgreSQL for its keys: a file of root may be readable by a group, as in a volume of
 * Kubernetes. */
static const char *credentials_check_file(int file)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "not a regular file";
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return "it must belong to the user of the daemon or to root";
    if ((status.st_mode & 0077 & ~(status.st_uid == 0 ? 0040U : 0U)) != 0)
        return "other users can read or change it; set its mode to 0600";
    return status.st_size > CREDENTIALS_FILE_MAX ? "the file is larger than 1 MiB" : NULL;
}

static const char *credentials_read(int file, char *bytes, size_t *out_length)
{
    size_t length = 0;
    const char *wrong = credentials_check_file(file);
    while (wrong == NULL && length <= CREDENTIALS_FILE_MAX) {
        ssize_t got = read(file, bytes + length, CREDENTIALS_FILE_MAX + 1 - length);
        if (got == 0)
            break;
        if (got > 0)
            length += (size_t)got;
        else if (errno != EINTR)
            wrong = strerror(errno);
    }
    *out_length = length;
    return wrong == NULL && length > CREDENTIALS_FILE_MAX ? "the file is larger than 1 MiB" : wrong;
}

struct credentials *credentials_load(const char *path, struct text *why)
{
    struct credentials *credentials = NULL;
    size_t length = 0;
    char *bytes = malloc(CREDENTIALS_FILE_MAX + 1);
    /* O_NONBLOCK: if the path is a FIFO, open() must not wait for a writer. */
    int file = bytes != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    const char *wrong = bytes == NULL ? out_of_memory
                        : file < 0    ? strerror(errno)
                                      : credentials_read(file, bytes, &length);
    if (file >= 0)
        (void)close(file);
    if (wrong != NULL)
        TEXT_JOIN(why, path, ": cannot read the credentials: ", wrong);
    else
        credentials = credentials_parse(path, bytes, length, why);
    if (bytes != NULL)
        explicit_bzero(bytes, length);
    free(bytes);
    return credentials;
}

/* ---- lookup ---- */

const struct login *credentials_by_secret(const struct credentials *credentials, const char *name,
                                          const char *secret)
{
    char id[CREDENTIALS_ID_SIZE], hex[SHA256_HEX + 1];
    struct text text;
    sha256_hex(secret, strlen(secret), hex);
    text_init(&text, id, sizeof id);
    TEXT_JOIN(&text, SECRET_DIGEST, hex);
    const struct login *login = credentials_find(credentials, id);
    if (login == NULL || name == NULL || strcmp(name, login->name) == 0)
        return login;
    return NULL;
}

const struct login *credentials_by_uid(const struct credentials *credentials, unsigned uid)
{
    char id[CREDENTIALS_ID_SIZE];
    struct text text;
    text_init(&text, id, sizeof id);
    text_add(&text, SECRET_UID);
    text_add_u64(&text, uid);
    return credentials_find(credentials, id);
}

const struct login *credentials_by_certificate(const struct credentials *credentials,
                                               const char *name)
{
    char id[CREDENTIALS_ID_SIZE];
    struct text text;
    text_init(&text, id, sizeof id);
    TEXT_JOIN(&text, SECRET_CERT, name);
    return text.cut ? NULL : credentials_find(credentials, id);
}

const struct login *credentials_find_again(const struct credentials *credentials,
                                           const struct login *login)
{
    const struct login *found = credentials_find(credentials, login->id);
    return found != NULL && strcmp(found->name, login->name) == 0 ? found : NULL;
}
