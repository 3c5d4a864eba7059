/* SPDX-License-Identifier: Apache-2.0 */
/* See log_fixture.h. */
#include "log_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fake_disk fake;
const struct disk *const disk = &fake.table;
struct log *one, *two;
enum log_result result;

struct log *open_on(const struct disk *of, unsigned boot)
{
    struct log *log = kit_open(of, boot, &result, NULL);
    assert_int_equal(result, LOG_OK);
    return log;
}

struct log *open_log(unsigned boot)
{
    return open_on(disk, boot);
}

struct stamp put(struct log *log, const char *key, const char *value)
{
    struct stamp written = {0};
    assert_int_equal(kit_put(disk, log, key, value, &written), LOG_OK);
    return written;
}

bool stands(struct log *log, const char *key, const char *value)
{
    return kit_has(disk, log, key, value);
}

void begin_at(int64_t boot_ms, int64_t wall_ms)
{
    fake_disk_init(&fake);
    fake.boot_ms = boot_ms;
    fake.wall_ms = wall_ms;
}

int begin(void **state)
{
    (void)state;
    begin_at(1000, 1000000);
    one = open_log(1);
    two = open_log(1);
    return 0;
}

int end(void **state)
{
    (void)state;
    log_close(&one);
    log_close(&two);
    size_t open = fake_disk_open_files(&fake);
    fake_disk_done(&fake);
    return open != 0 ? -1 : 0;
}
