/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: finds out what was asked for, hands over to that command, and makes sure that
 * an answer which nobody could read does not look like success. It decides nothing about locks.
 */
#include "face/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * A closed standard descriptor would be given to the next file that is opened: an answer would be
 * written into the store. It is filled with one that cannot be used that way, and that a program
 * which we start does not get.
 */
static bool fill_standard_files(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) >= 0)
            continue;
        int wrong_way = file == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", wrong_way | O_CLOEXEC) != file)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct context context = {.settings = {.conflict_status = EXIT_BUSY}};
    if (!fill_standard_files())
        return EXIT_INTERNAL;
    int status = parse_command_line(argc, argv, &context);
    if (status == EXIT_DONE && context.command != NULL)
        status =
            context.settings.help ? command_help.run(&context) : context.command->run(&context);
    lh_close(&context.client);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (status != EXIT_DONE)
        return status;
    return output_error(&context, LH_FAILED, "the answer could not be written: %s",
                        errno != 0 ? strerror(errno) : "stdout is in trouble");
}
