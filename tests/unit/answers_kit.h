/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of http_kit.h for tests of those who ask one: it gives one answer after the other,
 * whatever is asked, and keeps the requests.
 */
#ifndef LEASEHOLD_TESTS_ANSWERS_KIT_H
#define LEASEHOLD_TESTS_ANSWERS_KIT_H

#include "http_kit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False when it does not start; then there is nothing to close. */
bool answers_open(void);
void answers_close(void);
uint16_t answers_port(void);

/*
 * From now on these, NULL behind the last: "200 OK\nbody", with headers between the two;
 * "watch\n…" is cut behind its body, "stall\n…" says nothing more, "" cuts the connection at once.
 * "echo REVISION\nJSON" answers with the object of the request, merged with the JSON.
 * Beyond the last there is silence. What was heard is forgotten.
 */
void answers_say(const char *const *answers);
/* From now on this function answers. */
void answers_say_by(http_kit_answer *answers);
size_t answers_heard(void);
void answers_expect(size_t number, const char *text); /* in that request */

#endif
