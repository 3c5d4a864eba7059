/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Kubernetes API server that stores Leases, Pods and Events of one namespace
 * (hostile_api.c: strict and correct), and what a hostile one does to its nth reply or event (the
 * table is in hostile_k8s_table.c).
 */
#ifndef LEASEHOLD_TESTS_HOSTILE_K8S_H
#define LEASEHOLD_TESTS_HOSTILE_K8S_H

#include "hostile_http.h"

/* ---- the good server ---- */

/* Called on every change; `object` is borrowed. */
typedef void api_changed(const char *collection, const char *type, const json_t *object);

void api_init(api_changed *changed);
/* `target` is path and query; the body is borrowed, and may be NULL. */
void api_answer(const char *method, const char *target, const json_t *body, struct api_answer *out);
/* Calls `each` for the objects of a collection. */
void api_each(const char *collection, api_changed *each);
/* All objects, a new reference; and back, by a copy. NULL: none. */
json_t *api_copy(void);
void api_set(const json_t *objects);

/* ---- the hostile one ---- */

extern const struct variant k8s_variants[];
extern const size_t k8s_variant_count;

#endif
