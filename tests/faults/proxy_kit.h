/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that run the fault proxy (proxy.c), which is built beside their own program. */
#ifndef LEASEHOLD_TESTS_PROXY_KIT_H
#define LEASEHOLD_TESTS_PROXY_KIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct proxy_run {
    pid_t pid;
    FILE *commands, *answers;
    uint16_t port;       /* for clients */
    unsigned did_cut;    /* printed so far */
    char last_word[512]; /* the reply to the last command */
};

/* Starts it in front of that port of the loopback. False when it does not start. */
bool proxy_start(struct proxy_run *run, uint16_t to, uint64_t seed, const char *control);
/* Any program that prints "port N" and takes commands as the proxy does; words[0] is searched in
 * PATH. */
bool proxy_start_program(struct proxy_run *run, char **args);
/* Returns when the command is in force; false when it is none. */
bool proxy_say(struct proxy_run *run, const char *command);
/* One of its counters by name, such as "cuts". */
uint64_t proxy_count(struct proxy_run *run, const char *name);
/* True when its exit status is 0. */
bool proxy_stop(struct proxy_run *run);

#endif
