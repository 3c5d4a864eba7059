/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners: addresses, options of connections, unix socket files, and the limits of accepting. */
#include "net/listener.h"
#include "stream_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES_MOST = 256 };

static struct listener *listener;
static struct listener_peer last_peer;
static int files[FILES_MOST];
static unsigned file_count, pause_at, free_at;
static char why_bytes[512];
static struct text why;
static char folder[] = "/tmp/listener_XXXXXX", path[64], lock_path[80];

static void on_accepted(void *owner, int file, const struct listener_peer *peer)
{
    assert_ptr_equal(owner, &file_count);
    assert_true(file_count < FILES_MOST);
    files[file_count++] = file;
    last_peer = *peer;
    if (file_count == pause_at)
        listener_set_paused(listener, true);
    if (file_count == free_at)
        listener_free(&listener);
}

static const struct listener_callbacks callbacks = {.accepted = on_accepted, .owner = &file_count};

static int begin(void **state)
{
    file_count = pause_at = free_at = 0;
    text_init(&why, why_bytes, sizeof why_bytes);
    (void)snprintf(folder, sizeof folder, "/tmp/listener_XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/socket", folder);
    (void)snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    return kit_open(state);
}

static int finish(void **state)
{
    listener_free(&listener);
    while (file_count > 0)
        (void)close(files[--file_count]);
    (void)unlink(path);
    (void)unlink(lock_path);
    if (rmdir(folder) != 0)
        return -1; /* a listener left something behind */
    return kit_close(state);
}

static void open_tcp(const char *address)
{
    listener = listener_open_tcp(kit_net, address, &callbacks, &why);
    if (listener == NULL)
        fail_msg("%s", why_bytes);
}

static int connect_tcp(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(file >= 0);
    assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof address), 0);
    return file;
}

static int connect_path(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(file, (struct sockaddr *)&address, sizeof address) == 0)
        return file;
    (void)close(file);
    return -1;
}

static enum listener_unix_result open_path(struct listener **out)
{
    text_clear(&why);
    return listener_open_unix(kit_net, path, 0600, &callbacks, out, &why);
}

static int option_of(int file, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof value;
    assert_int_equal(getsockopt(file, level, name, &value, &length), 0);
    return value;
}

static void a_connection_has_its_options(void **state)
{
    (void)state;
    open_tcp("127.0.0.1:0");
    int client = connect_tcp(listener_port(listener));
    assert_true(kit_until(&file_count));
    assert_string_equal(last_peer.address, "127.0.0.1");
    assert_false(last_peer.local);
    assert_int_equal(last_peer.pid, -1);
    assert_true((fcntl(files[0], F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(files[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(files[0], SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_KEEPIDLE), 30);
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_KEEPINTVL), 10);
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_KEEPCNT), 3);
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
    (void)close(client);
}

static void addresses_take_several_forms(void **state)
{
    static const struct {
        const char *address, *shown;
        bool loopback;
    } forms[] = {{"127.0.0.1:0", "127.0.0.1:", true},
                 {"127.9.8.7:0", "127.9.8.7:", true},
                 {"localhost:0", "127.0.0.1:", true},
                 {"0", "127.0.0.1:", true},
                 {"[::1]:0", "[::1]:", true},
                 {"[::ffff:127.0.0.1]:0", "127.0.0.1:", true},
                 {"[::ffff:0.0.0.0]:0", "0.0.0.0:", false},
                 {":0", "[::]:", false},
                 {"0.0.0.0:0", "0.0.0.0:", false}};
    static const char *const bad[] = {"",       "x",       ":",          "::1:7379", "[::1]",
                                      "[::1]7", "[]:7379", "host:-1",    "host:",    "host:65536",
                                      "7379 ",  "host:1x", "host:100000"};
    char shown[64], expected[64];
    struct text text;
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        open_tcp(forms[i].address);
        text_init(&text, shown, sizeof shown);
        listener_describe(listener, &text);
        assert_true(listener_port(listener) > 0);
        (void)snprintf(expected, sizeof expected, "%s%u", forms[i].shown, listener_port(listener));
        assert_string_equal(shown, expected);
        assert_true(listener_is_loopback(listener) == forms[i].loopback);
        listener_free(&listener);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        text_clear(&why);
        assert_null(listener_open_tcp(kit_net, bad[i], &callbacks, &why));
        assert_non_null(strstr(why_bytes, "not an address"));
    }
}

static void all_interfaces_show_a_v4_peer(void **state)
{
    (void)state;
    open_tcp(":0");
    int client = connect_tcp(listener_port(listener));
    assert_true(kit_until(&file_count));
    assert_string_equal(last_peer.address, "127.0.0.1");
    (void)close(client);
}

static void a_port_in_use_is_named(void **state)
{
    char address[32];
    (void)state;
    open_tcp("127.0.0.1:0");
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", listener_port(listener));
    assert_null(listener_open_tcp(kit_net, address, &callbacks, &why));
    assert_non_null(strstr(why_bytes, address));
    assert_non_null(strstr(why_bytes, "Address already in use"));
}

static void a_unix_socket_knows_its_peer(void **state)
{
    char shown[128];
    struct text text;
    struct stat status;
    (void)state;
    assert_int_equal(open_path(&listener), LISTENER_OPEN);
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    int client = connect_path();
    assert_true(client >= 0);
    assert_true(kit_until(&file_count));
    assert_true(last_peer.local);
    assert_string_equal(last_peer.address, "unix");
    assert_int_equal(last_peer.pid, getpid());
    assert_int_equal(last_peer.uid, getuid());
    assert_int_equal(listener_port(listener), 0);
    assert_true(listener_is_loopback(listener));
    text_init(&text, shown, sizeof shown);
    listener_describe(listener, &text);
    assert_int_equal(strncmp(shown, "unix:/tmp/listener_", 19), 0);
    assert_string_equal(shown + 5, path);
    (void)close(client);
    listener_free(&listener);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(lock_path, F_OK), -1);
}

/* Also with a umask, which the kernel applies to the file of a socket. */
static void a_unix_socket_has_its_mode(void **state)
{
    static const unsigned modes[] = {0600, 0660, 0666, 0777, 0620};
    static const mode_t masks[] = {0, 022, 077, 0177};
    struct stat status;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        for (size_t j = 0; j < sizeof masks / sizeof masks[0]; j++) {
            mode_t before = umask(masks[j]);
            text_clear(&why);
            enum listener_unix_result result =
                listener_open_unix(kit_net, path, modes[i], &callbacks, &listener, &why);
            (void)umask(before);
            assert_int_equal(result, LISTENER_OPEN);
            assert_int_equal(lstat(path, &status), 0);
            if ((status.st_mode & 07777) != modes[i])
                fail_msg("%o with %o: %o", modes[i], masks[j], status.st_mode & 07777);
            listener_free(&listener);
        }
    }
}

/* As a killed process leaves it behind: a socket file and a lock file without a lock. */
static void leave_stale_socket(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct listener *mine = NULL;
        _exit(open_path(&mine) == LISTENER_OPEN ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(lock_path, F_OK), 0);
}

static void a_stale_socket_is_replaced(void **state)
{
    (void)state;
    leave_stale_socket();
    assert_int_equal(connect_path(), -1);
    assert_int_equal(open_path(&listener), LISTENER_OPEN);
    int client = connect_path();
    assert_true(client >= 0);
    (void)close(client);
}

static void a_live_socket_is_not_replaced(void **state)
{
    struct listener *other = NULL;
    (void)state;
    assert_int_equal(open_path(&listener), LISTENER_OPEN);
    assert_int_equal(open_path(&other), LISTENER_IN_USE);
    assert_non_null(strstr(why_bytes, path));
    (void)unlink(lock_path); /* the socket itself still answers */
    assert_int_equal(open_path(&other), LISTENER_IN_USE);
    assert_null(other);
    int client = connect_path();
    assert_true(client >= 0);
    assert_true(kit_until(&file_count));
    (void)close(client);
}

static void another_file_is_left_alone(void **state)
{
    (void)state;
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    (void)close(file);
    assert_int_equal(open_path(&listener), LISTENER_FAILED);
    assert_non_null(strstr(why_bytes, "not a socket"));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(lock_path, F_OK), -1);
    char longer[256];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(listener_open_unix(kit_net, longer, 0600, &callbacks, &listener, &why),
                     LISTENER_FAILED);
    assert_int_equal(
        listener_open_unix(kit_net, "/nowhere/at/all", 0600, &callbacks, &listener, &why),
        LISTENER_FAILED);
}

static void a_replaced_file_is_not_removed(void **state)
{
    (void)state;
    assert_int_equal(open_path(&listener), LISTENER_OPEN);
    (void)unlink(path);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    (void)close(file);
    listener_free(&listener);
    assert_int_equal(access(path, F_OK), 0);
}

enum { STARTERS = 8, STARTS = 50 };

/* Opens the socket when `start` ends, reports the result, and stays until `leave` ends. It leaves
 * a stale socket to the next round. */
static pid_t start_opener(const int *start, const int *report, const int *leave)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    struct listener *mine = NULL;
    char byte = 0;
    (void)close(start[1]);
    (void)close(leave[1]);
    (void)!read(start[0], &byte, 1);
    byte = (char)('0' + open_path(&mine));
    (void)!write(report[1], &byte, 1);
    (void)!read(leave[0], &byte, 1);
    _exit(0);
}

/* Many processes start at once beside a stale socket: exactly one of them listens. */
static void one_of_many_starters_listens(void **state)
{
    (void)state;
    for (int round = 0; round < STARTS; round++) {
        int start[2], report[2], leave[2], opened = 0;
        pid_t children[STARTERS];
        assert_int_equal(pipe2(start, O_CLOEXEC), 0);
        assert_int_equal(pipe2(report, O_CLOEXEC), 0);
        assert_int_equal(pipe2(leave, O_CLOEXEC), 0);
        for (int i = 0; i < STARTERS; i++)
            children[i] = start_opener(start, report, leave);
        (void)close(start[1]);
        for (int i = 0; i < STARTERS; i++) {
            char byte = 0;
            assert_int_equal(read(report[0], &byte, 1), 1);
            assert_true(byte == '0' + LISTENER_OPEN || byte == '0' + LISTENER_IN_USE);
            opened += byte == '0' + LISTENER_OPEN ? 1 : 0;
        }
        int client = connect_path();
        (void)close(leave[1]);
        for (int i = 0; i < STARTERS; i++)
            assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
        const int used[] = {client, start[0], report[0], report[1], leave[0]};
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
            (void)close(used[i]);
        assert_true(client >= 0);
        assert_int_equal(opened, 1);
    }
}

static void a_pause_leaves_connections_waiting(void **state)
{
    int clients[3];
    (void)state;
    pause_at = 2;
    open_tcp("0");
    for (int i = 0; i < 3; i++)
        clients[i] = connect_tcp(listener_port(listener));
    kit_settle();
    assert_int_equal(file_count, 2);
    listener_set_paused(listener, false);
    kit_settle();
    assert_int_equal(file_count, 3);
    for (int i = 0; i < 3; i++)
        (void)close(clients[i]);
}

static void a_burst_is_accepted_in_bounded_turns(void **state)
{
    enum { BURST = 100 };
    int clients[BURST];
    (void)state;
    assert_int_equal(open_path(&listener), LISTENER_OPEN);
    for (int i = 0; i < BURST; i++)
        clients[i] = connect_path();
    poller_step(kit_net);
    assert_int_equal(file_count, 64);
    poller_step(kit_net);
    assert_int_equal(file_count, BURST);
    for (int i = 0; i < BURST; i++)
        (void)close(clients[i]);
}

static void a_callback_may_free_the_listener(void **state)
{
    int clients[2];
    (void)state;
    free_at = 1;
    open_tcp("0");
    uint16_t port = listener_port(listener);
    clients[0] = connect_tcp(port);
    clients[1] = connect_tcp(port);
    kit_settle();
    assert_int_equal(file_count, 1);
    assert_null(listener);
    (void)close(clients[0]);
    (void)close(clients[1]);
}

/* Out of descriptors it sleeps and tries again, instead of spinning. */
static void no_descriptors_pause_it(void **state)
{
    struct rlimit before, none;
    (void)state;
    open_tcp("0");
    int client = connect_tcp(listener_port(listener));
    int next = dup(client);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    poller_step(kit_net);
    bool spins = poller_wait_fd(poller_fd(kit_net), /* most_ms= */ 50);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(file_count, 0);
    assert_false(spins);
    assert_true(kit_until(&file_count));
    (void)close(client);
}

static void an_open_socket_is_adopted(void **state)
{
    uint16_t port = 0;
    int pair[2];
    (void)state;
    int file = kit_listen(AF_INET, &port);
    listener = listener_adopt(kit_net, file, &callbacks);
    assert_non_null(listener);
    assert_int_equal(listener_port(listener), port);
    int client = connect_tcp(port);
    assert_true(kit_until(&file_count));
    assert_int_equal(option_of(files[0], IPPROTO_TCP, TCP_NODELAY), 1);
    (void)close(client);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_null(listener_adopt(kit_net, pair[0], &callbacks)); /* does not listen */
    assert_int_equal(fcntl(pair[0], F_GETFD), -1);
    (void)close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_connection_has_its_options, begin, finish),
        cmocka_unit_test_setup_teardown(addresses_take_several_forms, begin, finish),
        cmocka_unit_test_setup_teardown(all_interfaces_show_a_v4_peer, begin, finish),
        cmocka_unit_test_setup_teardown(a_port_in_use_is_named, begin, finish),
        cmocka_unit_test_setup_teardown(a_unix_socket_knows_its_peer, begin, finish),
        cmocka_unit_test_setup_teardown(a_unix_socket_has_its_mode, begin, finish),
        cmocka_unit_test_setup_teardown(a_stale_socket_is_replaced, begin, finish),
        cmocka_unit_test_setup_teardown(a_live_socket_is_not_replaced, begin, finish),
        cmocka_unit_test_setup_teardown(another_file_is_left_alone, begin, finish),
        cmocka_unit_test_setup_teardown(a_replaced_file_is_not_removed, begin, finish),
        cmocka_unit_test_setup_teardown(one_of_many_starters_listens, begin, finish),
        cmocka_unit_test_setup_teardown(a_pause_leaves_connections_waiting, begin, finish),
        cmocka_unit_test_setup_teardown(a_burst_is_accepted_in_bounded_turns, begin, finish),
        cmocka_unit_test_setup_teardown(a_callback_may_free_the_listener, begin, finish),
        cmocka_unit_test_setup_teardown(no_descriptors_pause_it, begin, finish),
        cmocka_unit_test_setup_teardown(an_open_socket_is_adopted, begin, finish),
    };
    return cmocka_run_group_tests_name("listener", tests, NULL, NULL);
}
