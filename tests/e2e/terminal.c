/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leasehold run` in an interactive shell: a shell with job control in a pseudo-terminal, key
 * presses, text read from the screen. Everything that works without leasehold must work with it.
 * terminal PROGRAM. Prints TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SCREEN = 1 << 16, LINE = 512, LIMIT_MS = 15000 };

#define CTRL_C "\003"
#define CTRL_D "\004"
#define CTRL_Z "\032"

static struct {
    char folder[32], program[4096];
    int terminal;
    pid_t shell;
    char screen[SCREEN]; /* output since the last key */
    size_t length;
    unsigned cases, failed;
} fixture = {.folder = "/tmp/leasehold-XXXXXX"};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- keys and screen ---- */

static void press(const char *keys)
{
    fixture.length = 0;
    fixture.screen[0] = '\0';
    if (write(fixture.terminal, keys, strlen(keys)) != (ssize_t)strlen(keys))
        abort();
}

static void type(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line, with $L for the program. */
static void type(const char *format, ...)
{
    char line[LINE];
    va_list list;
    va_start(list, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, above */
    int length = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= sizeof line - 1)
        abort();
    line[length] = '\n';
    line[length + 1] = '\0';
    press(line);
}

static void read_screen(int64_t wait_ms)
{
    struct pollfd source = {.fd = fixture.terminal, .events = POLLIN};
    if (poll(&source, 1, (int)wait_ms) <= 0)
        return;
    ssize_t got = read(fixture.terminal, fixture.screen + fixture.length,
                       sizeof fixture.screen - 1 - fixture.length);
    if (got > 0)
        fixture.length += (size_t)got;
    fixture.screen[fixture.length] = '\0';
}

/* True if the screen shows the text in time. Typed text is not shown: echo is off. */
static bool sees_within(const char *text, int64_t limit_ms)
{
    int64_t end_ms = now_ms() + limit_ms;
    while (strstr(fixture.screen, text) == NULL) {
        int64_t left_ms = end_ms - now_ms();
        if (left_ms <= 0 || fixture.length >= sizeof fixture.screen - 1)
            return false;
        read_screen(left_ms);
    }
    return true;
}

static bool sees(const char *text)
{
    return sees_within(text, LIMIT_MS);
}

static void check(bool ok, const char *name)
{
    fixture.failed += ok ? 0 : 1;
    (void)printf("%s %u - %s\n", ok ? "ok" : "not ok", ++fixture.cases, name);
    if (!ok) {
        for (char *at = fixture.screen; *at != '\0'; at++)
            if ((unsigned char)*at < ' ' && *at != '\n')
                *at = '?';
        (void)printf("# screen: %s\n", fixture.screen);
    }
    (void)fflush(stdout);
}

/* True if the shell is at its prompt, and the last status was this. */
static bool status_is(int status)
{
    char text[32];
    (void)snprintf(text, sizeof text, "st<%d>", status);
    type("echo \"st<$?>\"");
    return sees(text);
}

static bool key_is(bool is_free)
{
    type("$L run -n k -- true 2>/dev/null");
    return status_is(is_free ? 0 : 75);
}

/* ---- setup ---- */

static void set_up(void)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (mkdtemp(fixture.folder) == NULL)
        abort();
    fixture.shell = forkpty(&fixture.terminal, NULL, NULL, &size);
    if (fixture.shell < 0)
        abort();
    if (fixture.shell == 0) {
        char store[LINE];
        (void)snprintf(store, sizeof store, "file:%s/l.log", fixture.folder);
        (void)setenv("LEASEHOLD_STORE", store, 1);
        (void)setenv("HOME", fixture.folder, 1);
        (void)setenv("L", fixture.program, 1);
        (void)setenv("LC_ALL", "C", 1); /* the shell translates "Stopped" */
        (void)execlp("bash", "bash", "--norc", "--noprofile", "--noediting", "-i", (char *)NULL);
        _exit(127);
    }
    (void)fcntl(fixture.terminal, F_SETFD, FD_CLOEXEC);
    type("PS1= PS2=; stty -echo; cd \"$HOME\"; echo be''gin");
    if (!sees("begin")) {
        (void)printf("not ok 1 - no shell\n");
        exit(1);
    }
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)what, (void)kind, (void)where;
    return remove(path);
}

static int tear_down(void)
{
    int status;
    type("exit");
    int64_t end_ms = now_ms() + LIMIT_MS;
    while (waitpid(fixture.shell, &status, WNOHANG) == 0) {
        read_screen(/* wait_ms= */ 10);
        if (now_ms() < end_ms)
            continue;
        (void)kill(fixture.shell, SIGKILL);
        (void)waitpid(fixture.shell, &status, 0);
        break;
    }
    (void)close(fixture.terminal);
    (void)nftw(fixture.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)printf("1..%u\n", fixture.cases);
    return fixture.failed > 0;
}

/* ---- cases ---- */

static void stdin_is_passed_on(void)
{
    type("$L run k -- sh -c 'echo as''k; read x; echo got:$x; exit 3'");
    bool fine = sees("ask");
    type("hello");
    check(fine && sees("got:hello") && status_is(3), "the command reads from the terminal");
    type("$L run k -- sh -c 'test -t 0 && test -t 1 && tty; stty size'");
    check(sees("/dev/pts/") && sees("24 80") && status_is(0), "and has it");
}

static void ctrl_c_ends_the_command(void)
{
    type("$L run k -- sh -c 'echo here; exec sleep 100'");
    bool fine = sees("here");
    press(CTRL_C);
    check(fine && status_is(130), "Ctrl-C ends it, with 130");
    check(key_is(true), "and the lock is free");
    type("$L run k -- sh -c 'trap \"echo caught; exit 4\" INT; echo here; "
         "while :; do sleep 0.05; done'");
    fine = sees("here");
    press(CTRL_C);
    check(fine && sees("caught") && status_is(4), "one that handles Ctrl-C does so");
}

static void ctrl_c_ends_a_script(void)
{
    type("sh -c '$L run k -- sh -c \"echo here; exec sleep 100\"; echo af''ter'");
    bool fine = sees("here");
    press(CTRL_C);
    check(fine && status_is(130) && strstr(fixture.screen, "after") == NULL,
          "Ctrl-C ends the script around it, too");
}

/* Not sh: Debian 12's waits for its child's exec in a way that a Ctrl-Z at that moment stops
 * forever, with and without leasehold. */
static void ctrl_z_stops_and_fg_goes_on(void)
{
    type("$L run --ttl 2s k -- bash -c 'echo here; cat'");
    bool fine = sees("here");
    press(CTRL_Z);
    check(fine && sees("Stopped"), "Ctrl-Z stops the job");
    (void)sees_within("never", 2500);
    check(key_is(false), "which keeps its lock beyond the TTL");
    type("fg");
    type("again");
    check(sees("again"), "fg gives it the terminal, and it goes on");
    press(CTRL_Z);
    fine = sees("Stopped");
    type("fg >/dev/null");
    press(CTRL_D);
    check(fine && status_is(0) && key_is(true), "a second time, too; then it ends");
}

static void bg_lets_it_go_on_behind(void)
{
    type("$L run k -- bash -c 'echo here; while :; do sleep 0.05; echo >ticks; done'");
    bool fine = sees("here");
    press(CTRL_Z);
    fine = sees("Stopped") && fine;
    type("rm -f ticks; bg; while [ ! -e ticks ]; do sleep 0.05; done; echo tick''ed");
    check(fine && sees("ticked"), "bg lets it go on behind");
    type("kill %%1; wait %%1");
    check(status_is(143) && key_is(true), "where TERM ends it");
}

static void reading_behind_stops(void)
{
    type("$L run k -- sh -c 'cat; echo read''ing is over' &");
    type("while ! jobs | grep -q Stopped; do sleep 0.05; done; jobs -l");
    check(sees("Stopped (tty input)"), "who reads behind is stopped, as under a shell");
    type("fg");
    type("words");
    bool fine = sees("words");
    press(CTRL_D);
    check(fine && sees("reading is over") && status_is(0), "until it is brought to the front");
}

static void window_size_is_told(void)
{
    const struct winsize size = {.ws_row = 50, .ws_col = 132};
    type("$L run k -- sh -c 'trap \"stty size\" WINCH; echo here; "
         "while :; do sleep 0.05; done'");
    bool fine = sees("here");
    (void)ioctl(fixture.terminal, TIOCSWINSZ, &size);
    check(fine && sees("50 132"), "a new window size is told");
    press(CTRL_C);
    (void)status_is(130);
}

static void pipelines_work(void)
{
    type("echo in | $L run k -- cat | cat");
    check(sees("in") && status_is(0), "it works within a pipe");
    type("$L run k -- sh -c 'echo here; exec sleep 100' | cat");
    bool fine = sees("here");
    press(CTRL_C);
    check(fine && status_is(130) && key_is(true), "where Ctrl-C ends all of it");
    type("$L run k -- sh -c 'echo here; exec sleep 100' | cat");
    fine = sees("here");
    (void)sees_within("never", 100); /* exec replaces it by sleep */
    press(CTRL_Z);
    fine = sees("Stopped") && fine;
    type("fg; echo \"st<$?>\"");
    (void)sees_within("never", 300);
    press(CTRL_C);
    check(fine && status_is(130), "and Ctrl-Z stops all of it");
    type("$L run k -- sh -c 'read x </dev/tty; echo got:$x' | cat");
    type("key");
    check(sees("got:key") && status_is(0), "who needs the terminal there gets it");
}

static void ctrl_c_leaves_the_line(void)
{
    type("$L run k -- sleep 100 & sleep 0.3");
    type("$L run k -- echo never");
    (void)sees_within("is held by", 2000);
    press(CTRL_C);
    check(status_is(130), "Ctrl-C gives a place in line up");
    type("$L status k --json; kill %%1; wait");
    check(sees("\"waiters\":0"), "nobody waits then");
}

/* A job that is stopped in the queue, and was granted the lock since. */
static bool stop_in_line(void)
{
    type("$L run k -- sleep 100 & sleep 0.3; echo on''e");
    bool fine = sees("one");
    type("$L run --on-lost kill k -- echo mi''ne");
    (void)sees_within("is held by", 2000);
    press(CTRL_Z);
    fine = sees("Stopped") && fine;
    type("kill %%1; wait %%1; while $L run -n k -- true; do sleep 0.05; done");
    return status_is(0) && fine;
}

static void ctrl_z_waits_in_line(void)
{
    check(stop_in_line() && strstr(fixture.screen, "mine") == NULL,
          "a job that was stopped in line gets the lock and does not begin");
    type("fg");
    check(sees("mine") && status_is(0) && key_is(true), "before it goes on");
    bool fine = stop_in_line();
    type("$L break k --reason test; fg");
    fine = sees("lost: k") && fine;
    check(fine && status_is(76) && key_is(true),
          "one that is broken then says so, and never begins");
}

int main(int argc, char **argv)
{
    if (argc != 2 || realpath(argv[1], fixture.program) == NULL) {
        (void)fprintf(stderr, "usage: terminal PROGRAM\n");
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    set_up();
    stdin_is_passed_on();
    ctrl_c_ends_the_command();
    ctrl_c_ends_a_script();
    ctrl_z_stops_and_fg_goes_on();
    bg_lets_it_go_on_behind();
    reading_behind_stops();
    window_size_is_told();
    pipelines_work();
    ctrl_c_leaves_the_line();
    ctrl_z_waits_in_line();
    return tear_down();
}
