/* SPDX-License-Identifier: Apache-2.0 */
/* See raw.h. */
#include "raw.h"

#include "rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 160, CHUNK = 64 * 1024, CHUNKS = 128 };

void raw_make(struct raw *raw, const char *path)
{
    static const char zeros[CHUNK];
    raw->at = 0;
    raw->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool made = raw->file >= 0;
    for (int i = 0; made && i < CHUNKS; i++)
        made = pwrite(raw->file, zeros, sizeof zeros, (off_t)i * CHUNK) == (ssize_t)sizeof zeros;
    if (!made || fsync(raw->file) != 0)
        rounds_fail(path, strerror(errno));
}

void raw_overwrite(struct raw *raw)
{
    char record[RECORD];
    memset(record, 'x', sizeof record);
    memcpy(record, &raw->at, sizeof raw->at);
    if (raw->at + sizeof record > (uint64_t)CHUNKS * CHUNK)
        raw->at = 0;
    if (pwrite(raw->file, record, sizeof record, (off_t)raw->at) != (ssize_t)sizeof record ||
        fdatasync(raw->file) != 0)
        rounds_fail("overwrite", strerror(errno));
    raw->at += sizeof record;
}

void raw_done(struct raw *raw)
{
    (void)close(raw->file);
    raw->file = -1;
}
