/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes driver with the server of answers_kit.h, and requests for its key "k". A test
 * program that includes this names k8s_kit_set_up() and k8s_kit_tear_down() for each of its cases.
 */
#ifndef LEASEHOLD_TESTS_K8S_KIT_H
#define LEASEHOLD_TESTS_K8S_KIT_H

#include "answers_kit.h"

#include "store/k8s/k8s_internal.h"

#define NOT_FOUND "404 Not Found\n{\"details\":{\"kind\":\"leases\"}}"
#define OURS(revision)                                                                  \
    "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"" revision "\"," \
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"leasehold\"},"                      \
    "\"annotations\":{\"leasehold/key\":\"k\",\"leasehold/record\":\"r\"}},\"spec\":{}}"
#define LEASE(revision)                                                                 \
    "{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":\"" revision "\"," \
    "\"annotations\":{\"leasehold/key\":\"k\",\"leasehold/record\":\"r\","              \
    "\"leasehold/shown\":\"\"}},\"spec\":{}}"
#define EVENT(type, revision) "{\"type\":\"" type "\",\"object\":" LEASE(revision) "}\n"

#define STORY(name) cmocka_unit_test_setup_teardown(name, k8s_kit_set_up, k8s_kit_tear_down)

/* Result of a request; zeros before. */
struct asked {
    unsigned done;
    struct store_reply last;
    char why[512], key[64], bytes[1024];
};

extern void *k8s_kit_store;          /* the driver's state */
extern unsigned k8s_kit_notices;     /* that it returned … */
extern char k8s_kit_noticed[1024];   /* … and the last record that came with one */
extern const char *k8s_kit_by_proxy; /* more fields of the kubeconfig's cluster; "" */

int k8s_kit_set_up(void **state);
int k8s_kit_tear_down(void **state);
void k8s_kit_begin_at(const char *url, const char *const *answers);
void k8s_kit_begin(const char *const *answers); /* at k8s://blue */
void k8s_kit_end(void);
/* A file of the configuration's folder. */
void k8s_kit_write_file(const char *name, const char *text);

void k8s_kit_turn(int64_t ms);
bool k8s_kit_until(const unsigned *count, unsigned wanted); /* 10 s at most */

void k8s_kit_answered(void *caller, const struct store_reply *reply);
void k8s_kit_read_key(struct asked *asked);
void k8s_kit_create_key(struct asked *asked);
/* A grant of ours, over the record with that revision; 0: over nothing. */
void k8s_kit_grant_key(struct asked *asked, uint64_t revision);

#endif
