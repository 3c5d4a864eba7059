/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between the suite and its clients, which may be other processes: numbers, texts and lists
 * of numbers, read in the order in which they were put. Every item begins at a multiple of 8, so
 * that pointers into the packet are aligned; they are valid as long as the packet.
 */
#ifndef LEASEHOLD_TESTS_PACKET_H
#define LEASEHOLD_TESTS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
    char *bytes;
    size_t length, size;
    size_t at; /* read so far */
};

void packet_clear(struct packet *packet); /* keeps its memory */
void packet_done(struct packet *packet);
void packet_put(struct packet *packet, uint64_t number);
/* NULL is put as well, and is read as NULL. */
void packet_put_bytes(struct packet *packet, const void *bytes, size_t length);
void packet_put_text(struct packet *packet, const char *text);
void packet_put_packet(struct packet *packet, const struct packet *added);

uint64_t packet_next(struct packet *packet);
const void *packet_next_bytes(struct packet *packet, size_t *out_length);
const char *packet_next_text(struct packet *packet);

/* False if the other side is gone or, with a timeout, if nothing arrives in time. */
bool packet_send(const struct packet *packet, int file);
bool packet_receive(struct packet *packet, int file, int timeout_ms);

#endif
