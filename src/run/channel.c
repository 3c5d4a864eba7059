/* SPDX-License-Identifier: Apache-2.0 */
/* See channel.h. */
#include "run/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int channel_open(struct channel *foreground, struct channel *supervisor)
{
    int ends[2];
    struct channel_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, /* file= */ 0, /* offset= */ 0);
    if (page == MAP_FAILED)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, /* protocol= */ 0, ends) != 0) {
        int error = errno;
        (void)munmap(page, sizeof *page);
        return -error;
    }
    atomic_store(&page->kill_deadline_ms, CHANNEL_NEVER);
    *foreground = (struct channel){.file = ends[0], .page = page};
    *supervisor = (struct channel){.file = ends[1], .page = page};
    return 0;
}

void channel_close(struct channel *channel)
{
    if (channel->file >= 0)
        (void)close(channel->file);
    channel->file = -1;
}

bool channel_send(const struct channel *channel, enum channel_kind kind, int value, int file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof file)];
    } rights = {0};
    struct channel_message message = {.kind = kind, .value = value};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        rights.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&rights.head), &file, sizeof file);
        envelope.msg_control = rights.bytes;
        envelope.msg_controllen = sizeof rights.bytes;
    }
    /* Must not block: a stopped reader has buffer space for hundreds of messages. */
    return sendmsg(channel->file, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

int channel_receive(const struct channel *channel, struct channel_message *out, int *out_file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof *out_file)];
    } rights = {0};
    struct iovec part = {.iov_base = out, .iov_len = sizeof *out};
    struct msghdr envelope = {.msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = rights.bytes,
                              .msg_controllen = sizeof rights.bytes};
    ssize_t length = recvmsg(channel->file, &envelope, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (length != (ssize_t)sizeof *out)
        return 0;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&envelope);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS)
        memcpy(out_file, CMSG_DATA(head), sizeof *out_file);
    return 1;
}
