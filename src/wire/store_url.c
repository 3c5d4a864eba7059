/* SPDX-License-Identifier: Apache-2.0 */
/* See store_url.h. */
#include "wire/store_url.h"

#include "base/check.h"
#include "base/nearest.h"
#include "wire/duration.h"

#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
/* Bytes of a name or an address. Errors show the host, so it must not be part of a password. */
#define HOST_BYTES LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

enum { PORT_MAX = 65535 };

/* ---- splitting ---- */

static struct url_part part_of(const char *from, const char *end)
{
    return (struct url_part){.at = from, .length = (size_t)(end - from)};
}

void url_split(const char *text, bool users, struct url_parts *out)
{
    const char *last = users ? strrchr(text, '@') : NULL, *mark = strchr(text, '?');
    const char *sign = mark != NULL ? strchr(mark, '=') : NULL;
    *out = (struct url_parts){.ambiguous = last != NULL && sign != NULL && sign < last};
    if (last != NULL) {
        const char *colon = memchr(text, ':', (size_t)(last - text));
        out->user = part_of(text, colon != NULL ? colon : last);
        if (colon != NULL)
            out->password = part_of(colon + 1, last);
        text = last + 1;
    }
    const char *path = text + strcspn(text, "/?"), *query = path + strcspn(path, "?");
    out->hosts = part_of(text, path);
    if (*path == '/')
        out->path = part_of(path + 1, query);
    if (*query == '?')
        out->query = part_of(query + 1, query + strlen(query));
}

/* Removes the first element of a list; false if there is none. */
static bool next_part(struct url_part *list, char separator, struct url_part *out)
{
    if (list->length == 0)
        return false;
    const char *end = list->at + list->length, *found = memchr(list->at, separator, list->length);
    *out = part_of(list->at, found != NULL ? found : end);
    *list = part_of(found != NULL ? found + 1 : end, end);
    return true;
}

/* Splits at the first separator at or after `from`; without one there is no rest. */
static void split_pair(struct url_part pair, const char *from, char separator,
                       struct url_part *out_name, struct url_part *out_rest)
{
    const char *end = pair.at + pair.length;
    const char *found = memchr(from, separator, (size_t)(end - from));
    *out_name = part_of(pair.at, found != NULL ? found : end);
    *out_rest = found != NULL ? part_of(found + 1, end) : (struct url_part){0};
}

bool url_next_host(struct url_part *hosts, struct url_part *out_name, struct url_part *out_port)
{
    struct url_part host;
    if (!next_part(hosts, ',', &host))
        return false;
    bool bracket = host.length > 0 && host.at[0] == '[';
    const char *close = bracket ? memchr(host.at, ']', host.length) : NULL;
    split_pair(host, close != NULL ? close : host.at, ':', out_name, out_port);
    return true;
}

bool url_next_option(struct url_part *query, struct url_part *out_name, struct url_part *out_value)
{
    struct url_part pair;
    if (!next_part(query, '&', &pair))
        return false;
    split_pair(pair, pair.at, '=', out_name, out_value);
    return true;
}

/* ---- values ---- */

bool url_find_word(const char *words, struct url_part part, uint64_t *out_index)
{
    struct url_part list = {.at = words, .length = words != NULL ? strlen(words) : 0}, word;
    for (uint64_t i = 0; next_part(&list, '|', &word); i++) {
        if (word.length == part.length && memcmp(word.at, part.at, part.length) == 0) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

bool url_refuse(struct text *why, const char *text)
{
    text_add(why, text);
    return false;
}

static int hex_of(char letter)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = letter != '\0' ? strchr(digits, letter | 0x20) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

bool url_decode(struct url_part part, char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < part.length; i++) {
        const char *from = part.at + i;
        char letter = from[0];
        if (letter == '%' && i + 2 < part.length && hex_of(from[1]) >= 0 && hex_of(from[2]) >= 0) {
            letter = (char)(hex_of(from[1]) * 16 + hex_of(from[2]));
            i += 2;
        }
        if (at + 1 >= size)
            return false;
        to[at++] = letter;
    }
    to[at] = '\0';
    return text_is_clean(to, at);
}

bool url_read_number(struct url_part part, uint64_t most, uint64_t *out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < part.length; i++) {
        unsigned digit = (unsigned)(part.at[i] - '0');
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return part.length > 0 && number <= most;
}

/* ---- hosts ---- */

/* host, host:port, [::1] or [::1]:port */
static bool read_host(struct url_part name, struct url_part port, struct url_host *out)
{
    uint64_t number = 0;
    bool bracket = name.length > 1 && name.at[0] == '[' && name.at[name.length - 1] == ']';
    if (port.at != NULL && (!url_read_number(port, PORT_MAX, &number) || number == 0))
        return false;
    if (bracket)
        name = part_of(name.at + 1, name.at + name.length - 1);
    out->port = (uint16_t)number;
    if (name.length == 0) {
        text_copy(out->name, sizeof out->name, "localhost");
        return true;
    }
    return url_decode(name, out->name, sizeof out->name) &&
           strspn(out->name, bracket ? HOST_BYTES ":%" : HOST_BYTES) == strlen(out->name);
}

bool url_read_hosts(struct url_part part, struct url_host out[URL_HOSTS_MAX], size_t *out_count,
                    struct text *why)
{
    struct url_part name = {0}, port = {0};
    size_t count = 0;
    bool more = url_next_host(&part, &name, &port);
    do {
        if (count == URL_HOSTS_MAX)
            return url_refuse(why, "there are more than 8 hosts in the URL");
        if (!read_host(name, port, &out[count++]))
            return url_refuse(why, "a host is host, host:port or [address]:port; several are "
                                   "separated by commas");
        more = more && url_next_host(&part, &name, &port);
    } while (more);
    *out_count = count;
    return true;
}

/* ---- options ---- */

static void set_number(char *field, size_t size, uint64_t number)
{
    uint8_t narrow = (uint8_t)number; /* a bool */
    uint32_t middle = (uint32_t)number;
    if (size == sizeof narrow)
        memcpy(field, &narrow, sizeof narrow);
    else if (size == sizeof middle)
        memcpy(field, &middle, sizeof middle);
    else
        memcpy(field, &number, sizeof number);
}

static bool set_value(const struct url_option *option, struct url_part value, char *field)
{
    uint64_t number = 0;
    int64_t length_ms = 0;
    bool word = url_find_word(option->words, value, &number), good = word;
    if (option->kind == URL_TEXT)
        return (word || option->words == NULL) && url_decode(value, field, option->size) &&
               strlen(field) >= option->least &&
               (option->is_valid == NULL || option->is_valid(field));
    if (!word && option->kind == URL_NUMBER)
        good = url_read_number(value, option->most, &number) && number >= option->least;
    if (!word && option->kind == URL_DURATION) {
        good = duration_read(value.at, value.length, &length_ms) == DURATION_OK &&
               (uint64_t)length_ms >= option->least && (uint64_t)length_ms <= option->most;
        number = (uint64_t)length_ms;
    }
    if (good)
        set_number(field, option->size, number);
    return good;
}

static bool refuse_value(const struct url_option *option, struct text *why)
{
    if (option->rule != NULL)
        return url_refuse(why, option->rule);
    text_add(why, option->name);
    return url_refuse(why, " is too short, too long, or has control characters");
}

/* The name is shown only if it looks like one: it may be part of a password. */
static bool refuse_name(const struct url_form *form, const char *name, struct text *why)
{
    const char *names[URL_OPTIONS_MAX];
    bool shown = strspn(name, LOWER "-") == strlen(name);
    for (size_t i = 0; i < form->option_count; i++)
        names[i] = form->options[i].name;
    const char *near = shown ? nearest_match(name, names, form->option_count) : NULL;
    TEXT_JOIN(why, "the URL's option \"", shown ? name : "", "\" is unknown; ");
    if (near != NULL)
        TEXT_JOIN(why, "the closest is \"", near, "\"; ");
    text_add(why, "the options are ");
    for (size_t i = 0; i < form->option_count; i++)
        TEXT_JOIN(why, i == 0 ? "" : ", ", names[i]);
    return false;
}

bool url_read_options(struct url_part query, const struct url_form *form, uint32_t *out_given,
                      void *out, struct text *why)
{
    struct url_part part, value;
    char name[NEAREST_WORD_MAX + 1];
    size_t i;
    ASSERT(form->option_count <= URL_OPTIONS_MAX);
    for (*out_given = 0; url_next_option(&query, &part, &value); *out_given |= UINT32_C(1) << i) {
        if (value.at == NULL)
            return url_refuse(why, "options are written as ?name=value");
        if (!url_decode(part, name, sizeof name))
            name[0] = '\0';
        for (i = 0; i < form->option_count && strcmp(form->options[i].name, name) != 0;)
            i++;
        if (i == form->option_count)
            return refuse_name(form, name, why);
        if (!set_value(&form->options[i], value, (char *)out + form->options[i].offset))
            return refuse_value(&form->options[i], why);
    }
    return true;
}

bool url_read(const char *url, const struct url_form *form, struct url_parts *out_parts, void *out,
              struct text *why)
{
    const char *colon = url + strcspn(url, ":");
    uint64_t scheme;
    if (!url_find_word(form->schemes, part_of(url, colon), &scheme) ||
        strncmp(colon, "://", 3) != 0)
        return url_refuse(why, form->rule);
    url_split(colon + 3, form->users, out_parts);
    out_parts->scheme = (size_t)scheme;
    if (out_parts->ambiguous)
        return url_refuse(why, "an @ or a ? of the password, or an @ in an option, must be written "
                               "as %40 or %3F");
    return url_read_options(out_parts->query, form, &out_parts->given, out, why);
}
