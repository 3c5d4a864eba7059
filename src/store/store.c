/* SPDX-License-Identifier: Apache-2.0 */
/* What all drivers share; see store.h. */
#include "store/store.h"

struct store_facts store_facts_of(const struct store_driver *driver)
{
    unsigned bits = driver->capabilities;
    enum judge judge = (bits & STORE_TIME) != 0       ? JUDGE_STORE_TIME
                       : (bits & STORE_SESSIONS) != 0 ? JUDGE_SESSION
                                                      : JUDGE_OBSERVED;
    return (struct store_facts){.judge = judge,
                                .one_clock = (bits & STORE_ONE_CLOCK) != 0,
                                .tests_grant = (bits & STORE_TESTS_GRANT) != 0,
                                .answer_ms = 1000};
}
