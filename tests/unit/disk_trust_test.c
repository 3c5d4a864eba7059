/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals of the real disk: links, files and folders through which another user could choose the
 * file that we lock, and file systems whose locks do not work. It accepts a group's folder.
 */
#include "disk_kit.h"

#include "disk/folder.h"
#include "disk/resolve_path.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool accepts(const char *path)
{
    struct disk disk;
    if (!disk_open(&disk, path, NULL))
        return false;
    disk_done(&disk);
    return true;
}

static void touch(const char *name)
{
    int file = open(kit_path(name), O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(file >= 0);
    (void)close(file);
}

/* The error of opening "f" with this suffix. */
static int open_suffix(const char *suffix)
{
    struct disk disk;
    kit_open(&disk);
    int file = disk.open(disk.owner, suffix, DISK_CREATE);
    disk_done(&disk);
    return file;
}

static void make_folder(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(kit_path(name), 0700), 0);
    assert_int_equal(chmod(kit_path(name), mode), 0);
}

static void our_own_links_lead_to_a_folder(void **state)
{
    (void)state;
    make_folder("real", 0700);
    make_folder("real/deep", 0700);
    assert_int_equal(symlink("real", kit_path("relative")), 0);
    assert_int_equal(symlink(kit_path("relative/deep"), kit_path("absolute")), 0);
    struct disk disk;
    assert_true(disk_open(&disk, kit_path("./absolute/../..//relative/deep/./f"), NULL));
    assert_true(disk.open(disk.owner, "", DISK_CREATE) >= 0);
    disk_done(&disk);
    assert_int_equal(access(kit_path("real/deep/f"), F_OK), 0);
}

static void a_path_may_begin_where_we_are(void **state)
{
    (void)state;
    int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(before >= 0);
    make_folder("sub", 0700);
    assert_int_equal(chdir(kit_path("sub")), 0);
    assert_true(accepts("f"));
    assert_true(accepts("../f"));
    assert_true(kit_refuses("no/f", "No such file"));
    assert_int_equal(rmdir(kit_path("sub")), 0);
    assert_true(kit_refuses("f", "the current folder is gone"));
    assert_int_equal(fchdir(before), 0);
    (void)close(before);
}

static void links_in_a_circle_have_an_end(void **state)
{
    (void)state;
    assert_int_equal(symlink("b", kit_path("a")), 0);
    assert_int_equal(symlink("a", kit_path("b")), 0);
    assert_true(kit_refuses(kit_path("a/f"), "too many symbolic links"));
}

static void a_link_of_another_user_is_not_followed(void **state)
{
    (void)state;
    make_folder("real", 0700);
    assert_int_equal(symlink("real", kit_path("theirs")), 0);
    assert_true(accepts(kit_path("theirs/f")));
    assert_int_equal(lchown(kit_path("theirs"), KIT_USER, KIT_GROUP), 0);
    assert_true(kit_refuses(kit_path("theirs/f"), "theirs: a symbolic link of another user"));
    /* Nor through a link of our own. */
    assert_int_equal(symlink("theirs", kit_path("ours")), 0);
    assert_true(kit_refuses(kit_path("ours/f"), "theirs: a symbolic link of another user"));
}

static void a_file_swapped_after_the_check_is_not_opened(void **state)
{
    char said[512];
    struct text why;
    struct resolved_path resolved_path;
    struct folder folder;
    struct descriptors set;
    (void)state;
    text_init(&why, said, sizeof said);
    make_folder("real", 0700);
    make_folder("real/deep", 0700);
    make_folder("bait", 0700);
    make_folder("bait/deep", 0700);
    assert_true(resolve_path(&resolved_path, kit_path("bait/deep/f"), &why));
    assert_int_equal(rename(kit_path("bait"), kit_path("away")), 0);
    assert_int_equal(symlink("real", kit_path("bait")), 0);
    assert_true(descriptors_init(&set));
    bool opened = folder_open(&folder, &set, resolved_path.folder, &why);
    descriptors_done(&set);
    assert_false(opened);
    assert_non_null(strstr(said, "Too many levels of symbolic links"));
}

static void paths_that_name_no_file(void **state)
{
    char name[RESOLVED_NAME_MAX + 2], path[5000];
    (void)state;
    assert_true(kit_refuses("", "names no file"));
    assert_true(kit_refuses(kit_path(""), "names no file"));
    assert_true(kit_refuses(kit_path("."), "names no file"));
    assert_true(kit_refuses(kit_path(".."), "names no file"));
    assert_true(kit_refuses(kit_path("none/f"), "No such file"));
    touch("file");
    assert_true(kit_refuses(kit_path("file/f"), "Not a directory"));
    assert_true(kit_refuses(kit_path("file/deep/f"), "Not a directory"));
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(kit_refuses(kit_path(name), "name is too long"));
    assert_true(accepts(kit_path(name + 1)));
    memset(path, '/', sizeof path);
    memcpy(path + sizeof path - 2, "f", 2);
    assert_true(kit_refuses(path, "the path is too long"));
}

static void the_file_itself_is_no_link(void **state)
{
    (void)state;
    touch("target");
    assert_int_equal(symlink("target", kit_path("f")), 0);
    assert_true(kit_refuses(kit_path("f"), "a symbolic link; name the file itself"));
    assert_int_equal(unlink(kit_path("f")), 0);
    assert_int_equal(symlink("target", kit_path("f.lock")), 0);
    assert_int_equal(open_suffix(".lock"), -ELOOP);
}

static void a_second_name_is_refused(void **state)
{
    (void)state;
    touch("f");
    assert_true(accepts(kit_path("f")));
    assert_int_equal(link(kit_path("f"), kit_path("second")), 0);
    assert_true(kit_refuses(kit_path("f"), "a second name"));
    assert_int_equal(rename(kit_path("f"), kit_path("f.lock")), 0);
    assert_int_equal(open_suffix(".lock"), -EMLINK);
    assert_int_equal(unlink(kit_path("second")), 0);
    assert_true(open_suffix(".lock") >= 0);
}

static void only_regular_files(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(kit_path("f"), 0600), 0);
    assert_true(kit_refuses(kit_path("f"), "not a regular file"));
    assert_int_equal(rename(kit_path("f"), kit_path("f.lock")), 0);
    assert_int_equal(open_suffix(".lock"), -EINVAL);
    make_folder("f.index", 0700);
    assert_int_equal(open_suffix(".index"), -EISDIR);
    assert_true(kit_refuses(kit_path("f.index"), "not a regular file"));
}

static void a_file_of_another_user_is_refused(void **state)
{
    (void)state;
    touch("f");
    assert_int_equal(chown(kit_path("f"), KIT_USER, KIT_GROUP), 0);
    assert_true(kit_refuses(kit_path("f"), "the file belongs to another user"));
    /* A group's folder needs more than write permission for the group. */
    assert_int_equal(chown(kit_path(""), 0, KIT_GROUP), 0);
    assert_int_equal(chmod(kit_path(""), 0770), 0);
    assert_true(kit_refuses(kit_path("f"), "the group may write to the folder"));
    assert_int_equal(chmod(kit_path(""), 0700), 0);
    assert_int_equal(rename(kit_path("f"), kit_path("f.lock")), 0);
    assert_int_equal(open_suffix(".lock"), -EPERM);
}

static void everybodys_folder_is_refused_unless_sticky(void **state)
{
    (void)state;
    make_folder("open", 0777);
    assert_true(kit_refuses(kit_path("open/f"), "the folder is world-writable"));
    assert_int_equal(chmod(kit_path("open"), 01777), 0);
    assert_true(accepts(kit_path("open/f")));
}

static bool see_a_folder_without_rights(void)
{
    KIT_EXPECT(kit_refuses(kit_path("theirs/f"), "the folder belongs to another user"));
    KIT_EXPECT(kit_refuses(kit_path("readable/f"), "cannot write to the folder"));
    KIT_EXPECT(kit_refuses(kit_path("hidden/f"), "Permission denied"));
    KIT_EXPECT(accepts(kit_path("ours/f")));
    return true;
}

static void a_folder_of_another_user_is_refused(void **state)
{
    (void)state;
    assert_int_equal(chmod(kit_path(""), 0755), 0);
    make_folder("theirs", 0755);
    make_folder("readable", 0755);
    make_folder("hidden", 0700);
    make_folder("ours", 0700);
    assert_int_equal(chown(kit_path("theirs"), KIT_OTHER_USER, KIT_GROUP), 0);
    assert_int_equal(chown(kit_path("ours"), KIT_USER, KIT_GROUP), 0);
    assert_true(kit_in_child(see_a_folder_without_rights, KIT_USER, KIT_GROUP));
    /* Not even root, which might be led there. */
    assert_true(kit_refuses(kit_path("theirs/f"), "the folder belongs to another user"));
}

static void untrusted_file_systems_are_refused(void **state)
{
    (void)state;
    assert_true(kit_refuses("/proc/f", "/proc: the folder is on a file system of type 0x9fa0"));
    assert_true(kit_refuses("/proc/f", "whose locks and syncs are not known to hold"));
    assert_true(accepts("/dev/shm/f"));
}

static bool make_in_group(void)
{
    struct disk disk;
    struct stat status;
    (void)umask(0777);
    KIT_EXPECT(disk_open(&disk, kit_path("f"), NULL));
    int file = disk.open(disk.owner, "", DISK_CREATE);
    KIT_EXPECT(file >= 0);
    KIT_EXPECT(disk_write(&disk, file, "one", 3, /* offset= */ 0) == 0);
    KIT_EXPECT(fstat(file, &status) == 0);
    KIT_EXPECT((status.st_mode & 07777) == 0660 && status.st_gid == KIT_GROUP);
    KIT_EXPECT(disk.lock(disk.owner, file, 0) == 0);
    KIT_EXPECT(disk.open(disk.owner, ".index", DISK_EMPTY) >= 0);
    return true;
}

static bool use_in_group(void)
{
    struct disk disk;
    KIT_EXPECT(disk_open(&disk, kit_path("f"), NULL));
    int file = disk.open(disk.owner, "", DISK_CREATE);
    KIT_EXPECT(file >= 0);
    KIT_EXPECT(disk.size(disk.owner, file) == 3);
    KIT_EXPECT(disk_write(&disk, file, "two", 3, /* offset= */ 0) == 0);
    KIT_EXPECT(disk.lock(disk.owner, file, 0) == 0);
    KIT_EXPECT(disk.open(disk.owner, ".index", DISK_EMPTY) >= 0);
    KIT_EXPECT(disk.rename(disk.owner, ".index", ".old") == 0);
    disk_done(&disk);
    return true;
}

static bool see_nothing(void)
{
    KIT_EXPECT(kit_refuses(kit_path("f"), ""));
    return true;
}

/* For a folder of root and for one that a member made. */
static void share_folder(uid_t owner)
{
    assert_int_equal(chown(kit_path(""), owner, KIT_GROUP), 0);
    assert_int_equal(chmod(kit_path(""), 02770), 0);
    assert_true(kit_in_child(make_in_group, KIT_USER, KIT_GROUP));
    assert_true(kit_in_child(use_in_group, KIT_OTHER_USER, KIT_GROUP));
    assert_true(kit_in_child(see_nothing, KIT_OTHER_USER, KIT_GROUP + 1));
}

static void a_group_shares_a_folder_made_for_it(void **state)
{
    (void)state;
    share_folder(/* owner= */ 0);
    assert_true(accepts(kit_path("f")));
}

static void a_group_shares_a_members_folder(void **state)
{
    (void)state;
    share_folder(KIT_USER);
    assert_true(kit_refuses(kit_path("f"), "the folder belongs to another user"));
}

static bool see_files_of_all(void)
{
    KIT_EXPECT(kit_refuses(kit_path("f"), "the file belongs to another user"));
    return true;
}

static void a_file_of_another_group_is_refused(void **state)
{
    (void)state;
    touch("f");
    assert_int_equal(chown(kit_path("f"), KIT_OTHER_USER, KIT_GROUP + 1), 0);
    assert_int_equal(chown(kit_path(""), 0, KIT_GROUP), 0);
    assert_int_equal(chmod(kit_path(""), 02770), 0);
    assert_true(kit_in_child(see_files_of_all, KIT_USER, KIT_GROUP));
}

int main(void)
{
#define TRUST_TEST(name) cmocka_unit_test_setup_teardown(name, kit_make_folder, kit_drop_folder)
    const struct CMUnitTest tests[] = {
        TRUST_TEST(our_own_links_lead_to_a_folder),
        TRUST_TEST(a_path_may_begin_where_we_are),
        TRUST_TEST(links_in_a_circle_have_an_end),
        TRUST_TEST(a_file_swapped_after_the_check_is_not_opened),
        TRUST_TEST(paths_that_name_no_file),
        TRUST_TEST(the_file_itself_is_no_link),
        TRUST_TEST(a_second_name_is_refused),
        TRUST_TEST(only_regular_files),
        TRUST_TEST(everybodys_folder_is_refused_unless_sticky),
        TRUST_TEST(untrusted_file_systems_are_refused),
    };
    const struct CMUnitTest as_root[] = {
        TRUST_TEST(a_link_of_another_user_is_not_followed),
        TRUST_TEST(a_file_of_another_user_is_refused),
        TRUST_TEST(a_folder_of_another_user_is_refused),
        TRUST_TEST(a_group_shares_a_folder_made_for_it),
        TRUST_TEST(a_group_shares_a_members_folder),
        TRUST_TEST(a_file_of_another_group_is_refused),
    };
    int failed = cmocka_run_group_tests_name("disk_trust", tests, NULL, NULL);
    if (kit_is_root())
        failed += cmocka_run_group_tests_name("disk_trust, as root", as_root, NULL, NULL);
    return failed;
}
