/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h. Checks the open descriptor, so that the folder cannot be replaced between the check
 * and its use. */
#include "disk/folder.h"

#include "disk/resolve_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Not defined in <linux/magic.h>. */
enum { ZFS_MAGIC = 0x2fc12fc1, CEPH_MAGIC = 0x00c36400 };

static const struct {
    uint32_t magic;
    bool trusted;
    const char *name;
} file_systems[] = {
    {EXT4_SUPER_MAGIC, true, "ext4"}, /* ext2 and ext3 as well */
    {XFS_SUPER_MAGIC, true, "XFS"},
    {BTRFS_SUPER_MAGIC, true, "Btrfs"},
    {F2FS_SUPER_MAGIC, true, "F2FS"},
    {TMPFS_MAGIC, true, "tmpfs"},
    {OVERLAYFS_SUPER_MAGIC, true, "overlayfs"},
    {ZFS_MAGIC, true, "ZFS"},
    {NFS_SUPER_MAGIC, false, "NFS"},
    {SMB_SUPER_MAGIC, false, "SMB"},
    {CIFS_SUPER_MAGIC, false, "SMB"},
    {SMB2_SUPER_MAGIC, false, "SMB"},
    {CEPH_MAGIC, false, "Ceph"},
    {FUSE_SUPER_MAGIC, false, "FUSE"},
    {V9FS_MAGIC, false, "9p"},
};

const char *folder_file_system(uint32_t type, bool *out_trusted)
{
    *out_trusted = false;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        if (file_systems[i].magic == type) {
            *out_trusted = file_systems[i].trusted;
            return file_systems[i].name;
        }
    }
    return NULL;
}

static bool trust_file_system(int file, const char *path, struct text *why)
{
    struct statfs status;
    if (fstatfs(file, &status) != 0)
        return path_refuse(why, path, "cannot determine the file system", errno);
    bool trusted;
    const char *name = folder_file_system((uint32_t)status.f_type, &trusted);
    if (trusted)
        return true;
    (void)path_refuse(why, path, "the folder is on ", /* error= */ 0);
    text_add(why, name != NULL ? name : "a file system of type 0x");
    if (name == NULL)
        text_add_hex(why, (uint32_t)status.f_type);
    text_add(why, ", whose locks and syncs are not known to hold; use a local disk");
    return false;
}

static bool is_shared(const struct stat *status)
{
    return (status->st_mode & S_ISGID) != 0 && (status->st_mode & S_IWGRP) != 0;
}

/* A user who may rename files here can replace ours. A shared folder is trusted like its group,
 * whichever member created it; root counts as a member of no group. */
static bool trust_owner(const struct stat *status, const char *path, struct text *why)
{
    bool open_to_all = (status->st_mode & S_IWOTH) != 0;
    bool sticky = (status->st_mode & S_ISVTX) != 0;
    uid_t self = geteuid();
    bool open_to_group = (status->st_mode & S_IWGRP) != 0 && !is_shared(status);
    if (open_to_all && !sticky)
        return path_refuse(why, path, "the folder is world-writable; use one of your own",
                           /* error= */ 0);
    if (open_to_group && !sticky)
        return path_refuse(why, path,
                           "the group may write to the folder; take that right away, or make the "
                           "folder setgid to share the store with it",
                           /* error= */ 0);
    if (status->st_uid != 0 && status->st_uid != self &&
        (!is_shared(status) || open_to_all || self == 0))
        return path_refuse(why, path, "the folder belongs to another user; use one of your own",
                           /* error= */ 0);
    return true;
}

bool folder_open(struct folder *out, struct descriptors *set, const char *path, struct text *why)
{
    struct stat status;
    int file = descriptors_open(set, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, /* mode= */ 0);
    if (file == -ENOSYS)
        return path_refuse(why, path, "Linux 5.6 or later is needed", /* error= */ 0);
    if (file < 0)
        return path_refuse(why, path, "cannot open the folder", -file);
    if (fstat(file, &status) != 0)
        return path_refuse(why, path, "cannot stat the folder", errno);
    if (!trust_file_system(file, path, why) || !trust_owner(&status, path, why))
        return false;
    if (faccessat(file, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return path_refuse(why, path, "cannot write to the folder", errno);
    *out = (struct folder){
        .file = file,
        .shared = is_shared(&status),
        .group = status.st_gid,
    };
    return true;
}

mode_t folder_mode(const struct folder *folder)
{
    return folder->shared ? S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP : S_IRUSR | S_IWUSR;
}

bool folder_admits(const struct folder *folder, const struct stat *status)
{
    return status->st_uid == geteuid() || (folder->shared && status->st_gid == folder->group);
}
