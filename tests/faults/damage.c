/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small log with every byte changed in several ways, and truncated at every length; opened after
 * a boot, and within the boot by a new process. It must be refused and left unchanged; or cut as a
 * torn tail where no later record, nor the header, nor (within the boot) the page marks it as
 * synced, and counted as a cut; never read as another value. Prints TAP.
 */
#include "log_kit.h"

#include "base/checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MOST = 65536, STATES = 6, BOOT = 2 };

/* The log after each change: its end, and the value of each key. */
struct state {
    uint64_t end;
    const char *values[2];
};

static const char *const keys[] = {"a", "b"};
static struct fake_disk whole, disk;
static unsigned char bytes[BYTES_MOST], left[BYTES_MOST];
static size_t size;
static struct state states[STATES];
static unsigned state_count;
static uint64_t safe;       /* a later record or the header marks everything below as synced */
static uint64_t safe_later; /* … the page does */

static unsigned number;
static int status;
static char wrong[256];

static void report(const char *what)
{
    printf("%s %u - %s\n", wrong[0] == '\0' ? "ok" : "not ok", ++number, what);
    if (wrong[0] != '\0') {
        printf("# %s\n", wrong);
        status = 1;
    }
    wrong[0] = '\0';
}

static bool blame(const char *what, size_t offset, unsigned change)
{
    if (wrong[0] == '\0')
        (void)snprintf(wrong, sizeof wrong, "%s: byte %zu, change %#x", what, offset, change);
    return false;
}

/* Writing the log. */

static uint64_t end_of(const struct log *log)
{
    struct log_reader reader;
    struct log_record record;
    uint64_t end = LOG_START;
    if (!log_reader_open(log, &reader))
        abort();
    while (log_reader_next(&reader, &record) == LOG_READ_OK)
        end = record.offset + log_record_size(record.key_length, record.length);
    log_reader_done(&reader);
    return end;
}

static void must(enum log_result result)
{
    if (result != LOG_OK)
        abort();
}

static void change(struct log *log, unsigned key, const char *value)
{
    struct stamp written;
    must(kit_put(&whole.table, log, keys[key], value, &written));
    struct state *state = &states[state_count++];
    if (state_count > 1)
        *state = state[-1];
    state->values[key] = value;
    state->end = end_of(log);
}

/* How a log ends, after a compaction. */
enum ending {
    COPIED, /* without new changes: the header marks everything as synced */
    NAMED,  /* two synced changes, and a third one that marks them */
    KNOWN,  /* the last two are synced, and only the page marks them */
    ENDING_COUNT,
};

static void change_three(struct log *log, enum ending ending)
{
    const struct disk *table = &whole.table;
    state_count = 0;
    states[0].values[1] = "first";
    change(log, 0, "second");
    must(kit_sync(table, log));
    change(log, 1, NULL);
    if (ending == NAMED)
        must(kit_sync(table, log));
    change(log, 0, "third, and it is longer");
    if (ending == KNOWN)
        must(kit_sync(table, log));
    safe = states[ending == KNOWN ? 0 : 1].end;
    safe_later = states[ending == KNOWN ? 2 : 1].end;
}

static void write_log(enum ending ending)
{
    enum log_result result;
    const struct disk *table = &whole.table;
    fake_disk_init(&whole);
    whole.boot_ms = 1000;
    whole.wall_ms = 1000000;
    struct log *log = kit_open(table, /* boot= */ 1, &result, NULL);
    must(result);
    state_count = 0;
    states[0].values[1] = NULL;
    change(log, 0, "before the compaction");
    change(log, 1, "first");
    must(kit_make_garbage(table, log));
    must(kit_tend(log));
    must(log_needs_maintenance(log) ? LOG_IO : LOG_OK);
    states[0] = states[1];
    states[0].end = safe = safe_later = end_of(log);
    state_count = 1;
    if (ending != COPIED)
        change_three(log, ending);
    log_close(&log);
    size = fake_file_get(fake_disk_file(&whole, ""), bytes, sizeof bytes, 0);
}

/* Verdicts. */

struct counts {
    unsigned not_ours, newer, damaged, unknown, cut, cut_nothing, found_later, unseen;
};

static bool is_untouched(const unsigned char *expected, size_t length)
{
    const struct fake_file *file = fake_disk_file(&disk, "");
    return fake_file_get(file, left, sizeof left, 0) == length &&
           memcmp(left, expected, length) == 0;
}

static bool count_refusal(enum log_result result, struct counts *counts)
{
    counts->not_ours += result == LOG_NOT_OURS;
    counts->newer += result == LOG_NEWER;
    counts->damaged += result == LOG_DAMAGED;
    counts->unknown += result == LOG_UNKNOWN;
    return result == LOG_NOT_OURS || result == LOG_NEWER || result == LOG_DAMAGED ||
           result == LOG_UNKNOWN;
}

/* Index of the state that was read, searched from the last one; −1: none. */
static int notify(struct log *log)
{
    for (unsigned i = state_count; i-- > 0;)
        if (kit_has(&disk.table, log, "a", states[i].values[0]) &&
            kit_has(&disk.table, log, "b", states[i].values[1]))
            return (int)i;
    return -1;
}

/* The first state that contains the byte: this one and all later ones may be missing. */
static unsigned state_at(size_t offset)
{
    unsigned i = 0;
    while (i < state_count && offset >= states[i].end)
        i++;
    return i;
}

/* After a cut at `offset`: everything before it is intact, nothing follows; writes succeed. */
static bool is_cut_well(struct log *log, size_t offset)
{
    struct stamp written;
    int state = notify(log);
    bool fine = state >= 0 && (unsigned)state + 1 == state_at(offset);
    fine &= kit_agrees(&disk.table, log);
    fine &= kit_put(&disk.table, log, "a", "new", &written) == LOG_OK;
    fine &= kit_sync(&disk.table, log) == LOG_OK;
    log_close(&log);
    enum log_result result;
    log = kit_open(&disk.table, BOOT + 1, &result, NULL);
    fine &= log != NULL && kit_has(&disk.table, log, "a", "new") && log_cuts(log) == 0;
    log_close(&log);
    return fine;
}

static bool open_next_boot(size_t offset, unsigned how, const unsigned char *expected,
                           size_t length, struct counts *counts)
{
    enum log_result result;
    disk.boot_ms = 10;
    disk.wall_ms += 5000;
    struct log *log = kit_open(&disk.table, BOOT, &result, NULL);
    if (log == NULL) {
        if (!count_refusal(result, counts))
            return blame("refused for no good reason", offset, how);
        return is_untouched(expected, length) || blame("refused, but changed", offset, how);
    }
    unsigned cuts = log_cuts(log);
    counts->cut += cuts;
    counts->cut_nothing += cuts == 0;
    bool may = offset >= safe;
    if (!is_cut_well(log, offset) || !may)
        return blame(may ? "cut, but badly" : "cut where it was synced", offset, how);
    return true;
}

/* No process reads the whole log within a boot: damage is found when the record is read, if ever.
 * After the index is removed, the whole log is read. */
static bool open_same_boot(size_t offset, unsigned how, bool index, struct counts *counts)
{
    struct kit_value seen_value = {.result = LOG_OK};
    enum log_result result;
    if (!index)
        fake_disk_remove(&disk, ".index");
    struct log *log = kit_open(&disk.table, /* boot= */ 1, &result, NULL);
    if (log == NULL)
        return count_refusal(result, counts) || blame("refused for no reason", offset, how);
    for (unsigned i = 0; i < 2 && seen_value.result == LOG_OK; i++)
        kit_read(&disk.table, log, keys[i], &seen_value);
    int state = seen_value.result == LOG_OK ? notify(log) : -1;
    unsigned cuts = log_cuts(log);
    log_close(&log);
    counts->found_later += seen_value.result == LOG_DAMAGED;
    if (seen_value.result == LOG_DAMAGED && index)
        return true;
    counts->cut += cuts;
    counts->unseen += cuts == 0;
    if (index)
        return (state == (int)state_count - 1 && cuts == 0) || blame("misread", offset, how);
    return (state >= 0 && (unsigned)state + 1 == state_at(offset) && offset >= safe_later &&
            cuts == 1) ||
           blame("misread without an index", offset, how);
}

static void copy_whole(void)
{
    fake_disk_copy(&disk, &whole);
}

/* Every byte of the header and the records, one in the zeros between and after them. */
static size_t ways_at(size_t offset)
{
    bool written = offset < LOG_HEADER ||
                   (offset >= LOG_START && offset < states[state_count - 1].end + LOG_HEAD);
    return written ? 3 : 1;
}

static void change_bytes(void)
{
    static const unsigned char changes[] = {0x01, 0x80, 0xff};
    struct counts next = {0}, same = {0}, bare = {0};
    for (size_t offset = 0; offset < size && wrong[0] == '\0'; offset++) {
        for (size_t i = 0; i < ways_at(offset) && wrong[0] == '\0'; i++) {
            unsigned char changed = bytes[offset] ^ changes[i];
            for (unsigned way = 0; way < 3; way++) {
                copy_whole();
                fake_file_put(fake_disk_file(&disk, ""), &changed, 1, offset);
                bytes[offset] ^= changes[i];
                if (way == 0)
                    (void)open_next_boot(offset, changes[i], bytes, size, &next);
                else
                    (void)open_same_boot(offset, changes[i], way == 1, way == 1 ? &same : &bare);
                bytes[offset] ^= changes[i];
                fake_disk_done(&disk);
            }
        }
    }
    if (wrong[0] == '\0' && next.cut_nothing > 0)
        (void)blame("accepted without a word", next.cut_nothing, 0);
    if (wrong[0] == '\0' && (same.cut > 0 || bare.unseen > 0))
        (void)blame("not as expected within the boot", same.cut, bare.unseen);
    report("every byte changed: refused and left alone, or cut; never misread");
    printf("# %zu bytes, up to 3 ways each. Next boot: %u not ours, %u newer, %u damaged, %u cut, "
           "%u accepted\n",
           size, next.not_ours, next.newer, next.damaged, next.cut, next.cut_nothing);
    printf("# Same boot: %u not ours, %u newer, %u damaged at the head, %u when read, %u where "
           "nobody looks\n",
           same.not_ours, same.newer, same.damaged, same.found_later, same.unseen);
    printf("# Same boot, no index: %u not ours, %u newer, %u damaged, %u cut\n", bare.not_ours,
           bare.newer, bare.damaged, bare.cut);
}

/* A file is never shorter than it was when its last record was written. */
static void cut_lengths(void)
{
    struct counts next = {0}, bare = {0};
    for (size_t length = 0; length < size && wrong[0] == '\0'; length++) {
        copy_whole();
        fake_disk_file(&disk, "")->size = length;
        (void)open_next_boot(length, 0, bytes, length, &next);
        fake_disk_done(&disk);
        copy_whole();
        fake_disk_file(&disk, "")->size = length;
        (void)open_same_boot(length, 0, /* index= */ false, &bare);
        fake_disk_done(&disk);
    }
    if (wrong[0] == '\0' && next.cut + next.cut_nothing > 0)
        (void)blame("a shorter file was accepted", next.cut_nothing, 0);
    report("every length cut: refused and left alone");
    printf("# %zu lengths. Next boot: %u not ours, %u damaged. Same boot, no index: %u, %u\n", size,
           next.not_ours, next.damaged, bare.not_ours, bare.damaged);
}

static void refuse_newer(void)
{
    char text[256];
    struct text why;
    enum log_result result;
    unsigned char version = LOG_VERSION + 1;
    text_init(&why, text, sizeof text);
    copy_whole();
    fake_file_put(fake_disk_file(&disk, ""), &version, 1, /* offset= */ 8);
    struct log *log = kit_open(&disk.table, BOOT, &result, &why);
    if (log != NULL || result != LOG_NEWER || strstr(text, "version 2") == NULL ||
        strstr(text, "supported: 1") == NULL)
        (void)snprintf(wrong, sizeof wrong, "%.200s", text);
    log_close(&log);
    fake_disk_done(&disk);
    report("a newer version is refused, and both are named");
}

/* An intact record of an unknown type, at the end, and before others. */
static void refuse_unknown(void)
{
    for (unsigned i = 0; i < state_count && wrong[0] == '\0'; i++) {
        struct log_record record;
        enum log_result result;
        copy_whole();
        struct fake_file *file = fake_disk_file(&disk, "");
        uint64_t offset = i == 0 ? LOG_START : states[i - 1].end;
        uint64_t generation = 2;
        if (log_record_decode(bytes + offset, size - offset, offset, generation, &record) !=
            LOG_READ_OK)
            (void)blame("no record", offset, 0);
        size_t length = log_record_size(record.key_length, record.length);
        memcpy(left, bytes + offset, length);
        record.type = (enum log_type)(LOG_SEAL + 1);
        log_record_encode(&record, generation, left);
        fake_file_put(file, left, length, offset);
        (void)fake_file_get(file, left, sizeof left, 0);
        static unsigned char before[BYTES_MOST];
        memcpy(before, left, size);
        struct log *log = kit_open(&disk.table, BOOT, &result, NULL);
        if (log != NULL || result != LOG_UNKNOWN || !is_untouched(before, size))
            (void)blame("not refused", offset, (unsigned)result);
        log_close(&log);
        fake_disk_done(&disk);
    }
    report("an unknown type is refused");
}

int main(void)
{
    for (enum ending ending = 0; ending < ENDING_COUNT; ending++) {
        write_log(ending);
        change_bytes();
        cut_lengths();
        refuse_newer();
        refuse_unknown();
        fake_disk_done(&whole);
    }
    printf("1..%u\n", number);
    return status;
}
