/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point: parses the command line, runs the command, and turns a failed write to stdout
 * into an error status. It makes no decisions about locks.
 */
#include "face/cli/cli.h"
#include "face/cli/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The next file opened would get the number of a closed standard descriptor, and output would go to
 * the store. Fills the gap with /dev/null, opened in the wrong direction so that I/O still fails,
 * and closed on exec.
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
    metrics_file_update(&context);
    lh_close(&context.client);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (status != EXIT_DONE)
        return status;
    return output_error(&context, LH_FAILED, "cannot write to stdout: %s",
                        errno != 0 ? strerror(errno) : "write error");
}
