/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits and reads the URLs of stores: scheme://[user[:password]@]host[:port][,…][/path][?options].
 * A driver describes its options in a table. url_redact.c finds the secrets with the same
 * functions. Error texts contain no value, since it may be a secret. Pure.
 */
#ifndef LEASEHOLD_WIRE_STORE_URL_H
#define LEASEHOLD_WIRE_STORE_URL_H

#include "base/text.h"

enum { URL_HOSTS_MAX = 8, URL_HOST_MAX = 255, URL_OPTIONS_MAX = 32 };

/* ---- splitting: every text has these parts, also one that is not a valid URL ---- */

/* Bytes of a URL; `at` is NULL if the URL has no such part. */
struct url_part {
    const char *at;
    size_t length;
};

struct url_parts {
    struct url_part user, password, hosts, path, query;
    bool ambiguous; /* the last @ may be in the password or in an option */
    size_t scheme;  /* of url_read(): the index in the form's schemes */
    uint32_t given; /* of url_read(): bit i is option i of the table */
};

/* Splits the text after "scheme://". The last @ ends the password, since passwords are often not
 * encoded; without `users`, an @ is an ordinary byte. */
void url_split(const char *text, bool users, struct url_parts *out);
/* Removes the first element of the list; false if there is none. The name of a host includes the
 * brackets of an address. */
bool url_next_host(struct url_part *hosts, struct url_part *out_name, struct url_part *out_port);
bool url_next_option(struct url_part *query, struct url_part *out_name, struct url_part *out_value);

/* ---- reading ---- */

struct url_host {
    char name[URL_HOST_MAX + 1];
    uint16_t port; /* 0: not in the URL */
};

enum url_kind {
    URL_TEXT,     /* char[]: without control characters; with `words`, only one of them */
    URL_NUMBER,   /* an unsigned integer; a word of `words` is its index */
    URL_DURATION, /* int64_t, in milliseconds */
    URL_CHOICE,   /* the index in `words`: an enum, or a bool for two words */
};

struct url_option {
    const char *name;
    size_t offset, size; /* of the field */
    enum url_kind kind;
    uint64_t least, most;               /* of a number or a duration; least: of a text's length */
    const char *words;                  /* "auto|hash|plain" */
    bool (*is_valid)(const char *text); /* of a text; NULL: every text */
    const char *rule;                   /* the error text, which states the valid values */
};

#define URL_OPTION(type, field, option, ...)                                                      \
    {                                                                                             \
        .name = (option), .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field), \
        __VA_ARGS__                                                                               \
    }

/* The URLs of one driver. */
struct url_form {
    const char *schemes; /* "redis|rediss" */
    const char *rule;    /* the error text if "scheme://" is missing */
    bool users;          /* user[:password]@ is allowed */
    const struct url_option *options;
    size_t option_count;
};

/* Splits the URL and sets the fields of `out` that its options name. False with a reason in `why`;
 * some fields may be set then. */
bool url_read(const char *url, const struct url_form *form, struct url_parts *out_parts, void *out,
              struct text *why);
/* The same for a query alone. */
bool url_read_options(struct url_part query, const struct url_form *form, uint32_t *out_given,
                      void *out, struct text *why);
/* At least one host: localhost if the part is empty. */
bool url_read_hosts(struct url_part part, struct url_host out[URL_HOSTS_MAX], size_t *out_count,
                    struct text *why);
bool url_read_number(struct url_part part, uint64_t most, uint64_t *out);
/* Decodes %41 and the like; any other % stays, as in lock:%s. False if the text is too long or has
 * control characters, NUL included. */
bool url_decode(struct url_part part, char *to, size_t size);
/* The index of the part in a list such as "auto|hash|plain"; false if it is not there. */
bool url_find_word(const char *words, struct url_part part, uint64_t *out_index);
/* Adds the text to `why` and returns false. */
bool url_refuse(struct text *why, const char *text);

#endif
