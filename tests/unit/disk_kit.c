/* SPDX-License-Identifier: Apache-2.0 */
#include "disk_kit.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

int kit_make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-disk-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int drop(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

int kit_drop_folder(void **state)
{
    (void)state;
    return nftw(folder, drop, /* descriptors= */ 8, FTW_DEPTH | FTW_PHYS);
}

const char *kit_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void kit_open(struct disk *out)
{
    char text[512];
    struct text why;
    text_init(&why, text, sizeof text);
    if (!disk_open(out, kit_path("f"), &why))
        fail_msg("%s", text);
}

bool kit_refuses(const char *path, const char *text)
{
    char said[512];
    struct text why;
    struct disk disk;
    text_init(&why, said, sizeof said);
    if (disk_open(&disk, path, &why)) {
        disk_done(&disk);
        return false;
    }
    if (strstr(said, text) == NULL)
        print_message("# said: %s\n", said);
    return strstr(said, text) != NULL;
}

static bool become(int user, int group)
{
    gid_t groups[] = {(gid_t)group};
    if (group >= 0 &&
        (setgroups(1, groups) != 0 || setresgid(groups[0], groups[0], groups[0]) != 0))
        return false;
    return user < 0 || setresuid((uid_t)user, (uid_t)user, (uid_t)user) == 0;
}

bool kit_in_child(bool (*act)(void), int user, int group)
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(become(user, group) && act() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, /* options= */ 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool kit_is_root(void)
{
    return geteuid() == 0;
}
