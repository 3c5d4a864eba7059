/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between the suite and its seats, which may be other processes: numbers, words and lists of
 * numbers, read in the order in which they were put. Every item begins at a multiple of 8, so what
 * was read points into the packet and stays as long as it does.
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
/* NULL is put, too, and is read as NULL. */
void packet_put_bytes(struct packet *packet, const void *bytes, size_t length);
void packet_put_text(struct packet *packet, const char *text);
void packet_put_packet(struct packet *packet, const struct packet *added);

uint64_t packet_next(struct packet *packet);
const void *packet_next_bytes(struct packet *packet, size_t *out_length);
const char *packet_next_text(struct packet *packet);

/* False when the other side is gone, or, given a time, when it stays silent for so long. */
bool packet_send(const struct packet *packet, int file);
bool packet_receive(struct packet *packet, int file, int timeout_ms);

#endif
