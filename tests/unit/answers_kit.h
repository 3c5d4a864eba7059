/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of http_kit.h with scripted replies, for tests of its clients: it sends one reply
 * after the other, regardless of the request, and keeps the requests.
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
 * Sets the replies, NULL after the last: "200 OK\nbody", with headers between the two; "watch\n…"
 * is cut after its body, "stall\n…" sends nothing more, "" cuts the connection at once. "echo
 * REVISION\nJSON" replies with the object of the request, merged with the JSON. After the last
 * there is no reply. Earlier requests are dropped.
 */
void answers_say(const char *const *answers);
/* From now on this function replies. */
void answers_say_by(http_kit_answer *answers);
size_t answers_heard(void);
const char *answers_request(size_t number);
void answers_expect(size_t number, const char *text); /* in that request */

#endif
