/* SPDX-License-Identifier: Apache-2.0 */
/* See terminal.h. */
#include "process/terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int terminal_open(void)
{
    return open("/dev/tty", O_RDWR | O_CLOEXEC);
}

bool terminal_is_foreground(int terminal, pid_t group)
{
    return terminal >= 0 && tcgetpgrp(terminal) == group;
}

void terminal_set_foreground(int terminal, pid_t group)
{
    (void)tcsetpgrp(terminal, group);
}

static bool is_pipe(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool terminal_is_shared(void)
{
    return is_pipe(STDIN_FILENO) || is_pipe(STDOUT_FILENO);
}
