/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. */
#include "runtime/link.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int link_open(struct link *front, struct link *guardian)
{
    int ends[2];
    struct link_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, /* file= */ 0, /* offset= */ 0);
    if (page == MAP_FAILED)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, /* protocol= */ 0, ends) != 0) {
        int error = errno;
        (void)munmap(page, sizeof *page);
        return -error;
    }
    atomic_store(&page->last_moment_ms, LINK_NEVER);
    *front = (struct link){.file = ends[0], .page = page};
    *guardian = (struct link){.file = ends[1], .page = page};
    return 0;
}

void link_close(struct link *link)
{
    if (link->file >= 0)
        (void)close(link->file);
    link->file = -1;
}

bool link_send(const struct link *link, enum link_kind kind, int value, int file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof file)];
    } rights = {0};
    struct link_message message = {.kind = kind, .value = value};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        rights.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&rights.head), &file, sizeof file);
        envelope.msg_control = rights.bytes;
        envelope.msg_controllen = sizeof rights.bytes;
    }
    /* Nobody is kept waiting: a reader that is stopped has room for hundreds of these. */
    return sendmsg(link->file, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

int link_receive(const struct link *link, struct link_message *out, int *out_file)
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
    ssize_t length = recvmsg(link->file, &envelope, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (length != (ssize_t)sizeof *out)
        return 0;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&envelope);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS)
        memcpy(out_file, CMSG_DATA(head), sizeof *out_file);
    return 1;
}
