/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the codec: record_encode.c and record_decode.c. */
#ifndef LEASEHOLD_WIRE_RECORD_CODEC_INTERNAL_H
#define LEASEHOLD_WIRE_RECORD_CODEC_INTERNAL_H

#include "wire/record_codec.h"

enum { N_MAX = 1023 /* the token's lowest ten bits */ };

extern const char *const codec_order_names[ORDER_TEXT + 1];

/* Two THIS_WRITE stamps are the same, whatever their other fields contain. */
bool codec_same_stamp(const struct stamp *a, const struct stamp *b);

#endif
