/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, from COMMAND_LIST in cli.h. */
#include "face/cli/cli.h"

#include <string.h>

static const struct command *const commands[] = {
#define COMMAND_ADDRESS(name) &command_##name,
    COMMAND_LIST(COMMAND_ADDRESS)
#undef COMMAND_ADDRESS
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

const struct command *command_at(size_t index)
{
    return index < COMMANDS ? commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}
