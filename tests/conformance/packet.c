/* SPDX-License-Identifier: Apache-2.0 */
/* See packet.h. An item that is not read as it was put is a bug of the suite: an assertion. */
#include "packet.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { STEP = sizeof(uint64_t), FIRST_SIZE = 4096, PACKET_MAX = 1 << 28 };

static size_t padded(size_t length)
{
    return (length + STEP - 1) / STEP * STEP;
}

void packet_clear(struct packet *packet)
{
    packet->length = packet->at = 0;
}

void packet_done(struct packet *packet)
{
    free(packet->bytes);
    *packet = (struct packet){0};
}

static char *reserve(struct packet *packet, size_t length)
{
    size_t size = packet->size == 0 ? FIRST_SIZE : packet->size;
    while (size < packet->length + length)
        size *= 2;
    ASSERT(size <= PACKET_MAX);
    if (size != packet->size) {
        char *bytes = realloc(packet->bytes, size);
        ASSERT(bytes != NULL);
        packet->bytes = bytes;
        packet->size = size;
    }
    char *at = packet->bytes + packet->length;
    packet->length += length;
    return at;
}

void packet_put(struct packet *packet, uint64_t number)
{
    memcpy(reserve(packet, sizeof number), &number, sizeof number);
}

void packet_put_bytes(struct packet *packet, const void *bytes, size_t length)
{
    packet_put(packet, bytes != NULL ? length + 1 : 0);
    if (bytes == NULL)
        return;
    char *at = reserve(packet, padded(length + 1));
    memset(at, 0, padded(length + 1));
    memcpy(at, bytes, length);
}

void packet_put_text(struct packet *packet, const char *text)
{
    packet_put_bytes(packet, text, text != NULL ? strlen(text) : 0);
}

void packet_put_packet(struct packet *packet, const struct packet *added)
{
    if (added->length > 0)
        memcpy(reserve(packet, added->length), added->bytes, added->length);
}

static const char *advance(struct packet *packet, size_t length)
{
    ASSERT(length <= packet->length - packet->at);
    const char *at = packet->bytes + packet->at;
    packet->at += length;
    return at;
}

uint64_t packet_next(struct packet *packet)
{
    uint64_t number = 0;
    memcpy(&number, advance(packet, sizeof number), sizeof number);
    return number;
}

const void *packet_next_bytes(struct packet *packet, size_t *out_length)
{
    size_t length = packet_next(packet);
    *out_length = length > 0 ? length - 1 : 0;
    return length > 0 ? advance(packet, padded(length)) : NULL;
}

const char *packet_next_text(struct packet *packet)
{
    size_t length = 0;
    return packet_next_bytes(packet, &length);
}

static bool send_all(int file, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t sent = send(file, at, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int file, void *bytes, size_t length, int timeout_ms)
{
    char *at = bytes;
    while (length > 0) {
        struct pollfd wait = {.fd = file, .events = POLLIN};
        int ready = poll(&wait, 1, timeout_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t received = ready > 0 ? recv(file, at, length, 0) : 0;
        if (received <= 0)
            return false;
        at += received;
        length -= (size_t)received;
    }
    return true;
}

bool packet_send(const struct packet *packet, int file)
{
    uint64_t length = packet->length;
    return send_all(file, &length, sizeof length) && send_all(file, packet->bytes, packet->length);
}

bool packet_receive(struct packet *packet, int file, int timeout_ms)
{
    uint64_t length = 0;
    packet_clear(packet);
    if (!receive_all(file, &length, sizeof length, timeout_ms) || length > PACKET_MAX)
        return false;
    char *bytes = reserve(packet, (size_t)length);
    return receive_all(file, bytes, (size_t)length, timeout_ms);
}
