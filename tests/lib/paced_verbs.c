/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connected client that repeats calls on command: paced_verbs URL. Each input line has a verb
 * and a count ("acquire 10"); it prints a line when they are done, so that a script can count the
 * server's requests in between. "release" releases the acquired leases by their handles; "renew"
 * renews the first held one by token.
 */
#include "leasehold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100, KEY = 32 };

static struct lh_client *client;
static struct lh_lease *leases[MOST];

static enum lh_outcome do_one(const char *verb, size_t number, struct lh_report *report)
{
    char key[KEY];
    (void)snprintf(key, sizeof key, "paced-%zu", number);
    if (strcmp(verb, "acquire") == 0)
        return lh_acquire(client, key, NULL, &leases[number], report);
    if (strcmp(verb, "release") == 0)
        return lh_release(&leases[number], report);
    if (strcmp(verb, "renew") == 0)
        return lh_renew(client, "paced-0", lh_token(leases[0]), /* ttl_ms= */ 60000, report);
    (void)snprintf(report->text, sizeof report->text, "there is no verb %.20s", verb);
    return LH_USAGE;
}

int main(int argc, char **argv)
{
    char line[64];
    struct lh_report report = LH_REPORT_INIT;
    if (argc != 2 || lh_open(argv[1], NULL, &client, &report) != LH_OK) {
        (void)fprintf(stderr, "paced_verbs: %s\n", argc != 2 ? "say which URL" : report.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest = NULL;
        const char *verb = strtok_r(line, " \n", &rest);
        size_t count = strtoul(rest, NULL, 10);
        for (size_t i = 0; i < count && i < MOST; i++) {
            if (do_one(verb, i, &report) != LH_OK) {
                (void)fprintf(stderr, "paced_verbs: %s %zu: %s\n", verb, i, report.text);
                return 1;
            }
        }
        (void)printf("%s done\n", verb);
        (void)fflush(stdout);
    }
    lh_close(&client);
    return 0;
}
