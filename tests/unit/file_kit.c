/* SPDX-License-Identifier: Apache-2.0 */
/* See file_kit.h. */
#include "file_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char path[48], url[64], words[512];
struct store_callbacks file_kit_callbacks;
struct heard heard;
void (*file_kit_on_reply)(const struct store_reply *reply);

static char folder[32];

void hear(void *caller, const struct store_reply *reply)
{
    (void)caller;
    heard = (struct heard){.result = reply->result,
                           .written = reply->written,
                           .present = reply->present,
                           .dead_count = reply->dead_count,
                           .dead = reply->dead_count > 0 ? reply->dead_sessions[0] : 0};
    (void)snprintf(heard.why, sizeof heard.why, "%s", reply->why != NULL ? reply->why : "");
    if (file_kit_on_reply != NULL)
        file_kit_on_reply(reply);
}

int file_kit_begin(void **state)
{
    (void)state;
    memcpy(folder, "/tmp/file-test-XXXXXX", 22);
    bool made = mkdtemp(folder) != NULL;
    (void)snprintf(path, sizeof path, "%s/store.log", folder);
    (void)snprintf(url, sizeof url, "file:%s", path);
    return made ? 0 : -1;
}

int file_kit_end(void **state)
{
    static const char *const suffixes[] = {"", ".lock", ".index", ".new", ".index.new"};
    (void)state;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        (void)unlink(beside(suffixes[i]));
    return rmdir(folder); /* nothing else was left */
}

const char *beside(const char *suffix)
{
    static char name[96];
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return name;
}

void *try_open(uint64_t session)
{
    struct text why;
    void *store = malloc(file_driver.state_size);
    file_kit_callbacks.session = session;
    text_init(&why, words, sizeof words);
    if (store != NULL && !file_driver.open(store, url, &file_kit_callbacks, &why)) {
        free(store);
        return NULL;
    }
    return store;
}

void *open_store(uint64_t session)
{
    void *store = try_open(session);
    if (store == NULL)
        print_message("%s\n", words);
    assert_non_null(store);
    return store;
}

void close_store(void *store)
{
    file_driver.close(store);
    free(store);
}

enum reply_status ask(void *store, struct store_request request)
{
    heard.result = REPLY_DENIED;
    file_driver.submit(store, &request, hear, NULL);
    file_driver.step(store);
    return heard.result;
}
