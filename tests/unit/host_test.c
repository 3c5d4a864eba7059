/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of host and boot, and a clock that is the same in every time namespace; an error where
 * that is impossible: between two namespaces, and without /proc.
 */
#include "process/host.h"

#include "disk_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { AHEAD_S = 100000, SLACK_MS = 50, DIGITS = 2 * HOST_ID };

static void ids_stay_as_they_are(void **state)
{
    static const unsigned char zeros[HOST_ID];
    struct host_ids one, two;
    (void)state;
    assert_true(host_read(&one, NULL));
    assert_true(host_read(&two, NULL));
    assert_memory_equal(&one, &two, sizeof one);
    assert_memory_not_equal(one.boot, zeros, sizeof zeros);
    assert_memory_not_equal(one.boot, one.machine, sizeof zeros);
}

static void the_machine_is_who_it_says(void **state)
{
    struct host_ids ids;
    char said[64] = "", expected[DIGITS + 1] = "";
    (void)state;
    FILE *file = fopen("/etc/machine-id", "re");
    assert_true(host_read(&ids, NULL));
    for (size_t i = 0; i < HOST_ID; i++)
        (void)snprintf(expected + 2 * i, 3, "%02x", ids.machine[i]);
    if (file == NULL || fgets(said, sizeof said, file) == NULL || strlen(said) < DIGITS)
        (void)snprintf(said, sizeof said, "%s", expected); /* no id, or in another file */
    said[DIGITS] = '\0';
    assert_string_equal(said, expected);
    if (file != NULL)
        (void)fclose(file);
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    assert_int_equal(clock_gettime(clock, &now), 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void the_clocks_are_the_systems(void **state)
{
    (void)state;
    int64_t before_ms = clock_ms(CLOCK_REALTIME);
    int64_t now_ms = host_wall_ms();
    assert_true(now_ms >= before_ms && now_ms <= clock_ms(CLOCK_REALTIME));
    int64_t boot_ms = host_boot_ms();
    assert_true(boot_ms > 0);
    assert_true(host_boot_ms() >= boot_ms);
}

/* Results of the process in the other namespace. */
static struct {
    bool read;
    int64_t raw_ms, boot_ms;
} * seen;

static const char *offset;

static bool look_between_namespaces(void)
{
    char said[256];
    struct text why;
    struct host_ids ids;
    text_init(&why, said, sizeof said);
    KIT_EXPECT(unshare(CLONE_NEWTIME) == 0);
    KIT_EXPECT(!host_read(&ids, &why));
    KIT_EXPECT(strstr(said, "left its time namespace") != NULL);
    return true;
}

static bool look_from_another_namespace(void)
{
    struct host_ids ids;
    (void)host_boot_ms(); /* the fork below clears it */
    KIT_EXPECT(unshare(CLONE_NEWTIME) == 0);
    int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    KIT_EXPECT(file >= 0);
    KIT_EXPECT(write(file, offset, strlen(offset)) == (ssize_t)strlen(offset));
    pid_t child = fork();
    KIT_EXPECT(child >= 0);
    if (child == 0) {
        struct timespec now = {0};
        seen->boot_ms = host_boot_ms();
        seen->read = host_read(&ids, NULL) && clock_gettime(CLOCK_BOOTTIME, &now) == 0;
        seen->raw_ms = (int64_t)now.tv_sec * 1000;
        _exit(0);
    }
    KIT_EXPECT(waitpid(child, NULL, /* options= */ 0) == child);
    return true;
}

static bool can_unshare_time(void)
{
    return unshare(CLONE_NEWTIME) == 0;
}

static void look_with_offset(const char *words, int64_t ahead_s)
{
    offset = words;
    int64_t before_ms = host_boot_ms();
    int64_t raw_ms = clock_ms(CLOCK_BOOTTIME);
    assert_true(kit_in_child(look_from_another_namespace, /* user= */ -1, /* group= */ -1));
    int64_t after_ms = host_boot_ms();
    assert_true(seen->read);
    assert_true(seen->raw_ms - raw_ms > (ahead_s - 2) * 1000); /* it is another clock */
    assert_true(seen->raw_ms - raw_ms < (ahead_s + 60) * 1000);
    assert_true(seen->boot_ms >= before_ms - SLACK_MS);
    assert_true(seen->boot_ms <= after_ms + SLACK_MS);
}

static void between_two_namespaces_there_is_no_clock(void **state)
{
    (void)state;
    assert_true(kit_in_child(look_between_namespaces, /* user= */ -1, /* group= */ -1));
}

static void a_time_namespace_has_the_hosts_clock(void **state)
{
    (void)state;
    int shared = memfd_create("seen", MFD_CLOEXEC);
    assert_true(shared >= 0);
    assert_int_equal(ftruncate(shared, sizeof *seen), 0);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED, shared, /* offset= */ 0);
    assert_ptr_not_equal(seen, MAP_FAILED);
    look_with_offset("boottime 100000 5000000\n", AHEAD_S);
    look_with_offset("boottime -10 999000000\n", -10); /* no machine is that young */
    (void)munmap(seen, sizeof *seen);
    (void)close(shared);
}

static bool look_without_proc(void)
{
    char said[256];
    struct text why;
    struct host_ids ids;
    text_init(&why, said, sizeof said);
    KIT_EXPECT(chroot(kit_path("")) == 0);
    KIT_EXPECT(chdir("/") == 0);
    KIT_EXPECT(!host_read(&ids, &why));
    KIT_EXPECT(strstr(said, "cannot read /proc") != NULL);
    return true;
}

static void without_proc_there_is_no_saying(void **state)
{
    assert_int_equal(kit_make_folder(state), 0);
    assert_true(kit_in_child(look_without_proc, /* user= */ -1, /* group= */ -1));
    assert_int_equal(kit_drop_folder(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_stay_as_they_are),
        cmocka_unit_test(the_machine_is_who_it_says),
        cmocka_unit_test(the_clocks_are_the_systems),
    };
    const struct CMUnitTest with_namespaces[] = {
        cmocka_unit_test(between_two_namespaces_there_is_no_clock),
        cmocka_unit_test(a_time_namespace_has_the_hosts_clock),
    };
    const struct CMUnitTest as_root[] = {
        cmocka_unit_test(without_proc_there_is_no_saying),
    };
    int failed = cmocka_run_group_tests_name("host", tests, NULL, NULL);
    if (kit_is_root())
        failed += cmocka_run_group_tests_name("host, as root", as_root, NULL, NULL);
    /* Kernels and containers without time namespaces are not affected. */
    if (kit_is_root() && kit_in_child(can_unshare_time, /* user= */ -1, /* group= */ -1))
        failed += cmocka_run_group_tests_name("host, elsewhere", with_namespaces, NULL, NULL);
    return failed;
}
