/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the events of a source by poll and by webhook, and misses none: poller URL SOURCE TURNS.
 * SOURCE is a folder with the file `clock`, the source's own time in milliseconds, and the file
 * `events`, with one line "MOMENT ID" per event, at most 500 bytes; such lines on stdin are
 * webhooks. Both paths claim the event's id, so that it is handled once, and a restarted poller
 * continues at the watermark. With 0 turns it runs forever. Prints one line for each event.
 *
 * If a poller dies between handling an event and its finish, the event is handled again: make your
 * handler safe to repeat.
 */
#include <leasehold.h>
#include <leasehold_once.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATERMARK "events"

enum {
    OVERLAP_MS = 2000, /* maximum delay between an event's moment and its visibility */
    CLAIM_MS = 5000,   /* longer than the handling of one event */
    TURN_MS = 100
};

struct poller {
    struct lh_client *client;
    const char *source;
    int webhooks; /* -1 after the end of the input */
    char line[512];
    size_t length;
};

/* True if the event is done and needs no further poll. */
static bool handle(const struct poller *poller, long long moment, const char *event, const char *by)
{
    char id[sizeof poller->line + 8], until[32];
    struct lh_once claim = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_completion done = LH_COMPLETION_INIT;
    options.ttl_ms = CLAIM_MS;
    (void)snprintf(id, sizeof id, "event/%s", event);
    switch (lh_once_begin(poller->client, id, &options, &claim, &report)) {
    case LH_OK:
        break;
    case LH_DONE: /* already done */
        return true;
    case LH_BUSY: /* the claimer may be dead: its claim expires, and a later poll retries */
        return false;
    default:
        fprintf(stderr, "poller: %s\n", report.text);
        return false;
    }
    if (printf("%s by %s\n", event, by) < 0 || fflush(stdout) != 0) {
        (void)lh_once_abandon(poller->client, id, claim.token, NULL);
        return false;
    }
    /* Polls read it again until the watermark is an overlap further: keep its id until then. */
    (void)snprintf(until, sizeof until, "%lld", moment + OVERLAP_MS);
    done.watermark = WATERMARK;
    done.until = until;
    return lh_once_finish(poller->client, id, claim.token, &done, &report) == LH_OK;
}

/* Parses "MOMENT ID" and the end of the line; false for anything else. */
static bool read_event(char *line, long long *moment, const char **event)
{
    char *end = line + strcspn(line, "\n");
    if (*end != '\n')
        return false; /* the source is still writing the line */
    *end = '\0';
    *moment = strtoll(line, &end, 10);
    *event = end + 1;
    return end != line && *end == ' ' && end[1] != '\0';
}

/* Handles the webhooks received so far, without waiting. Polls read those that fail here, and those
 * that arrive while no poller runs. */
static void take_webhooks(struct poller *poller)
{
    long long moment;
    const char *event;
    char *free_from = poller->line + poller->length;
    struct pollfd webhooks = {.fd = poller->webhooks, .events = POLLIN};
    while (poll(&webhooks, 1, /* timeout= */ 0) > 0) {
        if (read(webhooks.fd, free_from, 1) != 1) {
            poller->webhooks = webhooks.fd = -1;
        } else if (*free_from != '\n' && free_from + 2 < poller->line + sizeof poller->line) {
            free_from++;
        } else {
            free_from[1] = '\0';
            if (read_event(poller->line, &moment, &event))
                (void)handle(poller, moment, event, "webhook");
            free_from = poller->line;
        }
    }
    poller->length = (size_t)(free_from - poller->line);
}

static FILE *open_source(const struct poller *poller, const char *file)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", poller->source, file);
    return fopen(path, "re");
}

/* True if all events from this moment on are done. */
static bool take_events(const struct poller *poller, long long from)
{
    char line[512];
    long long moment;
    const char *event;
    bool all = true;
    FILE *events = open_source(poller, "events");
    if (events == NULL)
        return false;
    while (fgets(line, sizeof line, events) != NULL) {
        if (read_event(line, &moment, &event) && moment >= from)
            all = handle(poller, moment, event, "poll") && all;
    }
    all = ferror(events) == 0 && all;
    (void)fclose(events);
    return all;
}

static bool read_clock(const struct poller *poller, long long *out_now)
{
    char line[32] = "";
    FILE *clock = open_source(poller, "clock");
    if (clock == NULL)
        return false;
    bool fine = fgets(line, sizeof line, clock) != NULL;
    (void)fclose(clock);
    *out_now = strtoll(line, NULL, 10);
    return fine;
}

/*
 * The order matters. The source's clock is read first: an event that becomes visible later is at
 * most an overlap older than it, and the next turn reads it. Webhooks are handled before the
 * watermark moves: later ones are newer than the clock, and their ids have not expired.
 */
static bool turn(struct poller *poller)
{
    char start[32];
    long long now;
    struct lh_watermark mark = LH_WATERMARK_INIT;
    struct lh_report report = LH_REPORT_INIT;
    if (!read_clock(poller, &now))
        return false;
    if (lh_watermark_begin(poller->client, WATERMARK, OVERLAP_MS, &mark, &report) != LH_OK) {
        fprintf(stderr, "poller: %s\n", report.text);
        return false;
    }
    take_webhooks(poller);
    if (!take_events(poller, strtoll(mark.value, NULL, 10) - OVERLAP_MS))
        return false;
    (void)snprintf(start, sizeof start, "%lld", now);
    /* Stale: another poller was faster, or the source's clock went back. If it can go back by more
     * than the overlap, use another position for the watermark, such as the source's own count. */
    enum lh_outcome outcome =
        lh_watermark_advance(poller->client, WATERMARK, mark.value, start, &report);
    return outcome == LH_OK || outcome == LH_STALE;
}

int main(int argc, char **argv)
{
    struct poller poller = {.source = argc == 4 ? argv[2] : NULL, .webhooks = STDIN_FILENO};
    struct lh_report report = LH_REPORT_INIT;
    bool fine = false;
    if (poller.source == NULL) {
        fprintf(stderr, "usage: poller URL SOURCE TURNS\n");
        return 64;
    }
    if (lh_open(argv[1], NULL, &poller.client, &report) != LH_OK) {
        fprintf(stderr, "poller: %s\n", report.text);
        return 69;
    }
    long turns = strtol(argv[3], NULL, 10);
    for (long i = 0; i < turns || turns == 0; i++) {
        struct pollfd webhooks = {.fd = poller.webhooks, .events = POLLIN};
        if (i > 0)
            (void)poll(&webhooks, 1, TURN_MS);
        fine = turn(&poller);
    }
    lh_close(&poller.client);
    return fine ? 0 : 1;
}
