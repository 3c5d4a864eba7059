/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the images that a power loss at each moment of a recorded stream could leave, opens each
 * in a new boot, and checks: it opens; reported changes exist; existing changes were written, up to
 * some point and none after it; revisions and times continue above those given; later writes exist
 * after the next boot, with no tail to cut. Some images lose power again while they are opened.
 */
#include "power_loss.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum {
    SUBSETS_UP_TO = 4, /* unsynced events: above this number each alone and each dropped */
    SECTOR = 512,      /* every border of a page is one of a sector, too */
    CHOICES = 4096,
    AGAIN_EVERY = 64, /* images that are interrupted a second time */
    BOOT = 2,
    LATER_MS = 5000,
};

struct loss_figures loss_figures;

void loss_violation(const char *what, unsigned workload, size_t moment)
{
    if (loss_figures.violations++ == 0)
        (void)snprintf(loss_figures.what, sizeof loss_figures.what, "%s: workload %u, moment %zu",
                       what, workload, moment);
}

/* All images of a moment. */

struct choices {
    size_t count;
    struct fake_choice list[CHOICES];
};

static void add_choice(struct choices *out, uint64_t kept, int torn, uint64_t torn_at, bool behind)
{
    static unsigned turn;
    ASSERT(out->count < CHOICES);
    out->list[out->count++] = (struct fake_choice){.kept = kept,
                                                   .torn = torn,
                                                   .torn_at = torn_at,
                                                   .torn_behind = behind,
                                                   .unsynced = turn++ % UNSYNCED_COUNT};
}

/* A write only up to a border or only from there on, without and with the later ones. */
static void add_torn(struct choices *out, const struct fake_event *event, size_t index,
                     size_t count, uint64_t must)
{
    uint64_t all = ((uint64_t)1 << count) - 1, before = ((uint64_t)1 << index) - 1;
    uint64_t end = event->offset + event->length;
    for (uint64_t at = (event->offset / SECTOR + 1) * SECTOR; at < end; at += SECTOR)
        for (unsigned way = 0; way < 4; way++) {
            uint64_t kept = way / 2 == 0 ? before : all;
            if (((kept | (uint64_t)1 << index) & must) == must)
                add_choice(out, kept, (int)index, at, way % 2 != 0);
        }
}

/* `must` survives: an image without it belongs to the moment before. */
static void collect(const struct fake_disk *disk, size_t moment, bool only_new, struct choices *out)
{
    int pending[FAKE_PENDING];
    size_t count = fake_disk_pending(disk, moment, pending);
    ASSERT(count < 63);
    uint64_t all = ((uint64_t)1 << count) - 1;
    uint64_t must = only_new && count > 0 ? (uint64_t)1 << (count - 1) : 0;
    out->count = 0;
    if (count <= SUBSETS_UP_TO) {
        for (uint64_t kept = 0; kept <= all; kept++)
            if ((kept & must) == must)
                add_choice(out, kept, /* torn= */ -1, 0, false);
    } else {
        add_choice(out, all, /* torn= */ -1, 0, false);
        if (must == 0)
            add_choice(out, 0, /* torn= */ -1, 0, false);
        for (size_t i = 0; i < count; i++) {
            uint64_t bit = (uint64_t)1 << i;
            if ((bit & must) == must)
                add_choice(out, bit, /* torn= */ -1, 0, false);
            if ((all & ~bit & must) == must)
                add_choice(out, all & ~bit, /* torn= */ -1, 0, false);
        }
    }
    for (size_t i = 0; i < count; i++)
        if (disk->events[pending[i]].kind == FAKE_WRITE)
            add_torn(out, &disk->events[pending[i]], i, count, must);
}

/* True if this event leaves images that the moment before it could not leave. */
static bool is_news(const struct fake_disk *disk, size_t moment, bool *out_told)
{
    *out_told = moment == 0;
    if (moment == 0)
        return true;
    const struct fake_event *event = &disk->events[moment - 1];
    *out_told = event->kind == FAKE_NOTE;
    bool changes =
        event->kind == FAKE_WRITE || event->kind == FAKE_NAMED || event->kind == FAKE_UNNAMED;
    return *out_told || (changes && !disk->files[event->file].unsynced);
}

/* One image. */

struct trial {
    const struct loss_history *story;
    unsigned changes; /* reported until the moment */
    const struct loss_view *view;
    unsigned boot;
    const char *wrong; /* the first one */
    char words[256];
    /* The state that was found, and the one written afterwards. */
    uint64_t standing[LOSS_KEYS];
    struct stamp after;
};

/* Changes exist up to some point, which no view is behind. After a failure unreported ones may be
 * missing, but a reported change, or one written later, exists. */
static bool is_possible(const struct trial *trial, const int *standing)
{
    const struct loss_history *story = trial->story;
    const struct loss_view *view = trial->view;
    if (story->failed) {
        bool fine = true;
        for (unsigned key = 0; key < LOSS_KEYS; key++) {
            bool later = standing[key] >= (int)view->changes;
            for (unsigned i = view->changes; i < story->change_count; i++)
                later |= standing[key] == LOSS_NOBODY && story->changes[i].key == key &&
                         story->changes[i].value == NULL;
            fine &= later || standing[key] == view->standing[key];
        }
        return fine;
    }
    int then[LOSS_KEYS] = {LOSS_NOBODY, LOSS_NOBODY};
    for (unsigned i = 0;; i++) {
        if (i >= view->changes && memcmp(then, standing, sizeof then) == 0)
            return true;
        if (i == story->change_count)
            return false;
        then[story->changes[i].key] = story->changes[i].value != NULL ? (int)i : LOSS_NOBODY;
    }
}

static void look(struct trial *trial, const struct disk *disk, struct log *log)
{
    int standing[LOSS_KEYS];
    const struct loss_history *story = trial->story;
    int64_t latest_ms = 0;
    for (unsigned key = 0; key < LOSS_KEYS; key++) {
        struct kit_value seen_value;
        kit_read(disk, log, loss_keys[key], &seen_value);
        if (seen_value.result != LOG_OK)
            trial->wrong = "it cannot be read";
        else if (!loss_identify(story, key, &seen_value, &standing[key]))
            trial->wrong = "what stands was never written";
        if (trial->wrong != NULL)
            return;
        trial->standing[key] = seen_value.revision;
        if (standing[key] >= 0 && story->changes[standing[key]].written.time_ms > latest_ms)
            latest_ms = story->changes[standing[key]].written.time_ms;
    }
    if (!is_possible(trial, standing))
        trial->wrong = "what was told is lost, or something is missing between what is there";
    else if (!kit_agrees(disk, log))
        trial->wrong = "the index says something else than the log";
    else if (log_now_ms(log) < latest_ms)
        trial->wrong = "the clock went back";
}

static bool has_gone_on(const struct trial *trial)
{
    uint64_t revision = trial->after.revision;
    for (unsigned i = 0; i < trial->changes; i++)
        if (trial->story->changes[i].written.revision >= revision)
            return false;
    return trial->standing[0] < revision && trial->standing[1] < revision;
}

static void open_again(struct trial *trial, const struct disk *disk, unsigned boot,
                       struct log **out)
{
    enum log_result result;
    struct text text;
    text_init(&text, trial->words, sizeof trial->words);
    text_add(&text, "it does not open: ");
    *out = kit_open(disk, boot, &result, &text);
    if (*out == NULL)
        trial->wrong = trial->words;
}

/* Opens the image, reads it, and continues to write. */
static void go_on(struct trial *trial, struct fake_disk *disk)
{
    struct log *log;
    const struct disk *table = &disk->table;
    loss_bug_into(disk, /* recovering= */ true);
    open_again(trial, table, trial->boot, &log);
    if (log == NULL)
        return;
    loss_figures.cuts += log_cuts(log);
    look(trial, table, log);
    enum log_result result = kit_put(table, log, "a", "after", &trial->after);
    if (result == LOG_OK)
        result = kit_sync(table, log);
    fake_disk_note(disk, /* note= */ 1);
    if (trial->wrong == NULL && result != LOG_OK)
        trial->wrong = "it cannot be written any more";
    if (trial->wrong == NULL && !has_gone_on(trial))
        trial->wrong = "a revision went back";
    log_close(&log);
}

/* In a later boot: "after" exists if it was reported, else it may; the rest is unchanged. */
static void look_again(struct trial *trial, struct fake_disk *disk, bool notify, bool clean)
{
    struct log *log;
    struct kit_value seen_value;
    struct stamp next;
    const struct disk *table = &disk->table;
    open_again(trial, table, trial->boot + 1, &log);
    if (log == NULL)
        return;
    unsigned cuts = log_cuts(log);
    kit_read(table, log, "a", &seen_value);
    bool after =
        seen_value.revision == trial->after.revision && strcmp(seen_value.value, "after") == 0;
    if (seen_value.result != LOG_OK ||
        (!after && (notify || seen_value.revision != trial->standing[0])))
        trial->wrong = "what was written after the loss is not there";
    kit_read(table, log, "b", &seen_value);
    if (seen_value.result != LOG_OK || seen_value.revision != trial->standing[1])
        trial->wrong = "what was found after the loss is not there any more";
    if (clean && cuts > 0)
        trial->wrong = "what was cut is still in the file";
    enum log_result result = kit_put(table, log, "b", "later", &next);
    if (result != LOG_OK || (notify && next.revision <= trial->after.revision))
        trial->wrong = "it does not go on after the second loss";
    log_close(&log);
}

/* A second loss, while the log is opened and written after the first one. */
static void lose_again(struct trial *trial, const struct fake_disk *disk,
                       const struct fake_disk *base)
{
    static struct fake_disk image;
    static struct choices choices;
    bool notify = false;
    for (size_t moment = 0; moment <= disk->event_count && trial->wrong == NULL; moment++) {
        bool note;
        if (!is_news(disk, moment, &note))
            continue;
        notify |= moment > 0 && note;
        collect(disk, moment, !note, &choices);
        for (size_t i = 0; i < choices.count && trial->wrong == NULL; i++) {
            fake_disk_image(disk, base, moment, &choices.list[i], &image);
            image.wall_ms += LATER_MS;
            look_again(trial, &image, notify, /* clean= */ false);
            fake_disk_done(&image);
            loss_figures.interrupted++;
        }
    }
}

static const char *judge_image(struct trial *trial, const struct fake_disk *disk,
                               const struct fake_disk *base, size_t moment,
                               const struct fake_choice *choice)
{
    static struct fake_disk image, before;
    bool again = loss_figures.images++ % AGAIN_EVERY == 0;
    fake_disk_image(disk, base, moment, choice, &image);
    image.wall_ms += LATER_MS;
    if (again)
        fake_disk_copy(&before, &image);
    image.recording = again;
    go_on(trial, &image);
    image.recording = false;
    if (again && trial->wrong == NULL)
        lose_again(trial, &image, &before);
    if (trial->wrong == NULL)
        look_again(trial, &image, /* notify= */ true, /* clean= */ true);
    fake_disk_done(&image);
    if (again)
        fake_disk_done(&before);
    return trial->wrong;
}

void loss_check(const struct fake_disk *disk, const struct fake_disk *base,
                const struct loss_history *story, unsigned workload)
{
    static struct choices choices;
    unsigned last = LOSS_NOTE(0, 0);
    for (size_t moment = 0; moment <= disk->event_count; moment++) {
        bool notify;
        if (!is_news(disk, moment, &notify))
            continue;
        if (notify && moment > 0)
            last = disk->events[moment - 1].note;
        collect(disk, moment, !notify, &choices);
        for (size_t i = 0; i < choices.count && loss_figures.violations == 0; i++) {
            struct trial trial = {.story = story,
                                  .changes = last >> 8,
                                  .view = &story->views[last & 0xff],
                                  .boot = BOOT};
            if (judge_image(&trial, disk, base, moment, &choices.list[i]) != NULL)
                loss_violation(trial.wrong, workload, moment);
        }
    }
}
