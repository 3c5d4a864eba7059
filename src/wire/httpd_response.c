/* SPDX-License-Identifier: Apache-2.0 */
/* See httpd_response.h. */
#include "wire/httpd_response.h"

#include "base/check.h"

static const struct {
    int status;
    const char *phrase;
} response_phrases[] = {
    {100, "Continue"},
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

const char *httpd_response_phrase(int status)
{
    for (size_t i = 0; i < sizeof response_phrases / sizeof response_phrases[0]; i++)
        if (response_phrases[i].status == status)
            return response_phrases[i].phrase;
    UNREACHABLE("a status without a phrase");
}

void httpd_response_start(struct text *out, int status)
{
    text_add(out, "HTTP/1.1 ");
    text_add_i64(out, status);
    TEXT_JOIN(out, " ", httpd_response_phrase(status), "\r\n");
}

void httpd_response_field(struct text *out, const char *name, const char *value)
{
    TEXT_JOIN(out, name, ": ");
    text_add_clean(out, value, strlen(value));
    text_add(out, "\r\n");
}

void httpd_response_number(struct text *out, const char *name, uint64_t number)
{
    TEXT_JOIN(out, name, ": ");
    text_add_u64(out, number);
    text_add(out, "\r\n");
}

void httpd_response_end(struct text *out)
{
    text_add(out, "\r\n");
}
