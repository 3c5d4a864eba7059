/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer's corpus matches its names: a file named ok-… is a record, one named no-… is none. A
 * stale corpus would leave the deep paths of the decoder to chance.
 */
#include "core/record.h"
#include "wire/record_codec.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct record record;
static char bytes[2 * RECORD_MAX];

static enum decode_result decode_file(const char *name)
{
    char path[4096];
    struct codec_error error;
    (void)snprintf(path, sizeof path, "%s/record_codec/%s", LH_CORPUS, name);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    return record_decode(bytes, length, &record, &error);
}

static void test_every_file_keeps_its_name(void **state)
{
    (void)state;
    size_t good = 0, bad = 0;
    struct dirent **files = NULL;
    int count = scandir(LH_CORPUS "/record_codec", &files, NULL, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        const char *name = files[i]->d_name;
        bool ok = strncmp(name, "ok-", 3) == 0;
        if (name[0] != '.') {
            assert_true(ok || strncmp(name, "no-", 3) == 0);
            if ((decode_file(name) == DECODE_OK) != ok)
                fail_msg("%s does not keep its name", name);
            *(ok ? &good : &bad) += 1;
        }
        free(files[i]);
    }
    free(files);
    assert_true(good >= 30 && bad >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_file_keeps_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
