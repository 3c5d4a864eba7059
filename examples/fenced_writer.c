/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that has lost its lease without detecting it, and a guarded side that refuses it:
 * fenced_writer URL FILE. The guarded side stores the highest token seen with the data, and
 * compares it with the token of each write, under its own lock. So a stalled writer does no harm,
 * however late its write arrives. Clocks and leases alone cannot guarantee that.
 */
#include <leasehold.h>
#include <leasehold_admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* The guarded side: one line, "TOKEN TEXT". False if the token is older than the stored one. */
static bool guarded_write(const char *path, uint64_t token, const char *text)
{
    char line[256];
    uint64_t highest = 0;
    FILE *file = fopen(path, "a+");
    if (file == NULL || flock(fileno(file), LOCK_EX) != 0) {
        perror(path);
        if (file != NULL)
            (void)fclose(file);
        return false;
    }
    rewind(file);
    if (fgets(line, sizeof line, file) != NULL)
        highest = strtoull(line, NULL, 10);
    bool accepted = token >= highest;
    if (accepted && ftruncate(fileno(file), 0) == 0)
        accepted = fprintf(file, "%" PRIu64 " %s\n", token, text) > 0 && fflush(file) == 0;
    (void)fclose(file);
    printf("%s: %s\n", text, accepted ? "written" : "refused, a newer token was here");
    return accepted;
}

static bool play(struct lh_client *client, struct lh_client *operator_client, const char *path)
{
    struct lh_lease *slow = NULL, *quick = NULL;
    struct lh_report report = LH_REPORT_INIT;
    bool fine = lh_acquire(client, "report", NULL, &slow, &report) == LH_OK;
    fine = fine && guarded_write(path, lh_token(slow), "first by slow");
    /* Slow stalls here. An operator breaks its lock, and another writer gets the key. */
    fine = fine && lh_break(operator_client, "report", "it hangs", true, &report) == LH_OK;
    fine = fine && lh_acquire(operator_client, "report", NULL, &quick, &report) == LH_OK;
    fine = fine && lh_token(quick) > lh_token(slow);
    fine = fine && guarded_write(path, lh_token(quick), "second by quick");
    /* Slow continues without a call of lh_held(). */
    fine = fine && !guarded_write(path, lh_token(slow), "third by slow");
    if (!fine)
        fprintf(stderr, "fenced_writer: %s\n", report.text);
    if (slow != NULL)
        printf("slow's release: %s\n", lh_outcome_name(lh_release(&slow, NULL)));
    if (quick != NULL)
        printf("quick's release: %s\n", lh_outcome_name(lh_release(&quick, NULL)));
    return fine;
}

int main(int argc, char **argv)
{
    struct lh_client *client = NULL, *operator_client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    if (argc != 3) {
        fprintf(stderr, "usage: fenced_writer file:LOG FILE\n");
        return 64;
    }
    if (lh_open(argv[1], NULL, &client, &report) != LH_OK ||
        lh_open(argv[1], NULL, &operator_client, &report) != LH_OK) {
        fprintf(stderr, "fenced_writer: %s\n", report.text);
        lh_close(&client);
        return 69;
    }
    bool fine = play(client, operator_client, argv[2]);
    lh_close(&operator_client);
    lh_close(&client);
    return fine ? 0 : 1;
}
