/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with its own poll loop, one thread and no blocking call: event_server URL. It reads the
 * lines "lock KEY" and "unlock KEY" from its input, and prints the result of each when it arrives:
 * "KEY TOKEN", "KEY busy", "KEY ok"; "KEY lost" if a lock is lost. A lock request waits for up to
 * five seconds, and the server handles other lines meanwhile. Ends with its input.
 */
#include <leasehold.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOCKS_MAX = 64, LINE_MAX_BYTES = 600 };

struct lock {
    char key[LH_KEY_SIZE];
    struct lh_lease *lease;
    struct lh_request *request;
    bool pending;
};

static struct {
    struct lh_client *client;
    struct lock locks[LOCKS_MAX];
    int pending;
} server;

static void on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lock *lock = user;
    (void)lease;
    (void)report;
    printf("%s lost\n", lock->key);
}

static void on_locked(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lock *lock = user;
    lh_request_free(lock->request);
    lock->request = NULL;
    lock->pending = false;
    lock->lease = lease;
    server.pending--;
    if (lease != NULL)
        printf("%s %" PRIu64 "\n", lock->key, lh_token(lease));
    else
        printf("%s %s\n", lock->key, lh_outcome_name(report->outcome));
    if (lease == NULL)
        lock->key[0] = '\0';
}

static void on_unlocked(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lock *lock = user;
    (void)lease;
    lock->pending = false;
    server.pending--;
    printf("%s %s\n", lock->key, lh_outcome_name(report->outcome));
    lock->key[0] = '\0';
}

/* The held lock with that key, or, for an empty key, an unused entry. */
static struct lock *find(const char *key)
{
    for (int i = 0; i < LOCKS_MAX; i++) {
        struct lock *lock = &server.locks[i];
        if (strcmp(lock->key, key) == 0 && !lock->pending && (lock->lease != NULL || *key == '\0'))
            return lock;
    }
    return NULL;
}

static void lock_key(const char *key)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    struct lock *lock = find("");
    size_t length = strlen(key);
    if (lock == NULL || length >= sizeof lock->key) {
        printf("%s refused\n", key);
        return;
    }
    options.wait_ms = 5000;
    options.on_lost = on_lost;
    options.user = lock;
    memcpy(lock->key, key, length + 1);
    lock->pending = true;
    server.pending++;
    lock->request = lh_acquire_start(server.client, key, &options, on_locked, lock, &report);
    if (lock->request == NULL)
        on_locked(lock, NULL, &report);
}

static void unlock_key(const char *key)
{
    struct lock *lock = *key != '\0' ? find(key) : NULL;
    if (lock == NULL || lh_release_start(&lock->lease, on_unlocked, lock) != LH_OK) {
        printf("%s refused\n", key);
        return;
    }
    lock->pending = true;
    server.pending++;
}

static void obey(const char *line)
{
    if (strncmp(line, "lock ", 5) == 0)
        lock_key(line + 5);
    else if (strncmp(line, "unlock ", 7) == 0)
        unlock_key(line + 7);
    else
        printf("? %s\n", line);
}

/* False at the end of the input. A read may return part of a line. */
static bool read_lines(void)
{
    static char buffer[LINE_MAX_BYTES];
    static size_t filled;
    ssize_t count = read(STDIN_FILENO, buffer + filled, sizeof buffer - 1 - filled);
    if (count <= 0)
        return false;
    filled += (size_t)count;
    for (char *end = memchr(buffer, '\n', filled); end != NULL;
         end = memchr(buffer, '\n', filled)) {
        *end = '\0';
        obey(buffer);
        filled -= (size_t)(end + 1 - buffer);
        memmove(buffer, end + 1, filled);
    }
    if (filled == sizeof buffer - 1) /* no key is that long */
        filled = 0;
    return true;
}

int main(int argc, char **argv)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    bool open = true;
    options.own_loop = true;
    if (argc != 2) {
        fprintf(stderr, "usage: event_server URL\n");
        return 64;
    }
    if (lh_open(argv[1], &options, &server.client, &report) != LH_OK) {
        fprintf(stderr, "event_server: %s\n", report.text);
        return 69;
    }
    while (open || server.pending > 0) {
        struct pollfd waits[] = {{.fd = lh_fd(server.client), .events = POLLIN},
                                 {.fd = open ? STDIN_FILENO : -1, .events = POLLIN}};
        (void)poll(waits, 2, /* timeout= */ -1);
        (void)lh_step(server.client); /* first: deadlines do not wait for input */
        if (waits[1].revents != 0)
            open = read_lines();
        (void)fflush(stdout);
    }
    lh_close(&server.client);
    for (int i = 0; i < LOCKS_MAX; i++) {
        if (server.locks[i].lease != NULL)
            (void)lh_release(&server.locks[i].lease, NULL);
    }
    return 0;
}
