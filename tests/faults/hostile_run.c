/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hostile.h: one worker and one run of the program. The worker is also the server: it serves
 * while it waits for the program's exit. On a busy machine a late run is compared with one on a
 * good server at the same moment, and repeated; a case is late when it is late three times.
 */
#include "hostile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SANITIZER_STATUS = 99,
    LATE_MS = 1000, /* beyond the timeouts */
    START_MS = 400, /* needed by the program to start and exit under a sanitizer, under load */
    HANG_MS = 5000, /* limit after which it is killed */
    TRIES = 3,
    SETUP_CALLS = 4,
    ARGS_SIZE = 16384,
    SAID_MAX = 64 * 1024,
    SHORT_TIMEOUT_MS = 1000,
};

/* Under a sanitizer most of the memory is not the program's own. */
#ifdef __SANITIZE_ADDRESS__
static const long resident_max_kb = LONG_MAX;
#else
static const long resident_max_kb = 64L * 1024;
#endif

/* ---- the process ---- */

struct process {
    pid_t pid;
    int file, said; /* its exit; its output */
    bool ended, muted;
    int status;
    struct rusage used;
    int64_t began_ms;
};

static void enter(const struct worker *worker, char *const *args, int said)
{
    char path[FOLDER_SIZE + 16], address[64];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "%s/kubeconfig", worker->folder);
    (void)snprintf(address, sizeof address, "http://127.0.0.1:%u", (unsigned)worker->wire.port);
    bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setpgid(0, 0) == 0 &&
                 chdir(worker->folder) == 0 && dup2(null, STDIN_FILENO) >= 0 &&
                 dup2(said, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0 &&
                 setenv("HOME", worker->folder, 1) == 0 && setenv("KUBECONFIG", path, 1) == 0 &&
                 setenv("GITHUB_API_URL", address, 1) == 0 &&
                 setenv("GITHUB_TOKEN", "t-secret", 1) == 0 &&
                 setenv("ASAN_OPTIONS", "exitcode=99:detect_leaks=1", 1) == 0 &&
                 setenv("UBSAN_OPTIONS", "halt_on_error=1:exitcode=99:print_stacktrace=1", 1) == 0;
    (void)signal(SIGPIPE, SIG_DFL);
    if (ready)
        (void)execv(args[0], args);
    _exit(127);
}

static bool process_start(const struct worker *worker, char *const *args, struct process *out)
{
    int pipes[2];
    *out = (struct process){.file = -1, .said = -1, .began_ms = wire_now_ms()};
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return false;
    (void)malloc_trim(0); /* our own memory would be counted as the program's */
    out->pid = fork();
    if (out->pid == 0)
        enter(worker, args, pipes[1]);
    (void)close(pipes[1]);
    out->said = pipes[0];
    (void)fcntl(out->said, F_SETFL, O_NONBLOCK);
    out->file = out->pid > 0 ? (int)syscall(SYS_pidfd_open, out->pid, 0) : -1;
    return out->file >= 0;
}

/* ---- judging the output ---- */

static bool has_control(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool next_is_c1 = byte == 0xc2 && i + 1 < length && (unsigned char)bytes[i + 1] < 0xa0;
        if ((byte < 0x20 && byte != '\n') || byte == 0x7f || next_is_c1)
            return true;
    }
    return false;
}

static void read_output(struct process *process, struct run *run)
{
    char piece[16384];
    ssize_t got;
    while ((got = read(process->said, piece, sizeof piece)) > 0) {
        if (has_control(piece, (size_t)got))
            run->faults |= FAULT_CONTROL;
        size_t room = SAID_MAX - run->said.length;
        bytes_add(&run->said, piece, (size_t)got < room ? (size_t)got : room);
    }
    process->muted = got == 0;
}

static bool has_number(const char *list, int number)
{
    char *end = NULL;
    for (const char *at = list; at != NULL && *at != '\0'; at = end + strspn(end, " ")) {
        if (strtol(at, &end, 10) == number)
            return true;
    }
    return false;
}

/* Out of memory and internal errors (70), usage (64): no server may cause them. */
static bool is_documented(const struct hostile_verb *verb, int status)
{
    return has_number("0 65 69 73 75 76 77 78", status) || has_number(verb->statuses, status);
}

/* ---- one run ---- */

/* Serves until it has exited; kills a hanging program. */
static void follow(struct worker *worker, struct process *process, int64_t stop_after_ms,
                   int64_t most_ms, struct run *run)
{
    int64_t kill_at_ms = process->began_ms + most_ms + HANG_MS;
    int64_t stop_at_ms = stop_after_ms > 0 ? process->began_ms + stop_after_ms : kill_at_ms;
    while (!process->ended) {
        struct pollfd files[] = {{.fd = process->file, .events = POLLIN},
                                 {.fd = process->muted ? -1 : process->said, .events = POLLIN}};
        int64_t now_ms = wire_now_ms();
        if (now_ms >= kill_at_ms) {
            (void)kill(-process->pid, SIGKILL);
            kill_at_ms += HANG_MS;
        } else if (now_ms >= stop_at_ms) {
            (void)kill(process->pid, SIGTERM);
            stop_at_ms = kill_at_ms;
        }
        wire_serve(&worker->wire, files, 2, stop_at_ms < kill_at_ms ? stop_at_ms : kill_at_ms);
        if (files[1].revents != 0)
            read_output(process, run);
        if (files[0].revents != 0)
            process->ended = wait4(process->pid, &process->status, 0, &process->used) > 0;
    }
    run->took_ms = wire_now_ms() - process->began_ms;
    read_output(process, run);
    (void)kill(-process->pid, SIGKILL); /* its leftovers */
    (void)close(process->file);
    (void)close(process->said);
}

static void run_args(struct worker *worker, const struct hostile_verb *verb, char *const *args,
                     struct run *run)
{
    struct process process;
    int64_t most_ms = verb->calls * worker->timeout_ms + verb->takes_ms + LATE_MS + START_MS;
    if (!process_start(worker, args, &process)) {
        run->faults |= FAULT_CRASH;
        return;
    }
    follow(worker, &process, verb->stop_after_ms, most_ms, run);
    bool signaled = WIFSIGNALED(process.status);
    run->status = signaled ? 128 + WTERMSIG(process.status) : WEXITSTATUS(process.status);
    run->resident_kb = process.used.ru_maxrss;
    run->most_ms = most_ms;
    bool killed = signaled && WTERMSIG(process.status) == SIGKILL && run->took_ms > most_ms;
    bool crashed = (signaled && !killed) || run->status == SANITIZER_STATUS || run->status == 127 ||
                   run->status == 128 + SIGABRT || run->status == 128 + SIGSEGV;
    if (crashed && !(run->status == 128 + SIGTERM && verb->stop_after_ms > 0))
        run->faults |= FAULT_CRASH;
    else if (!killed && !is_documented(verb, run->status))
        run->faults |= FAULT_STATUS;
    if (run->took_ms > most_ms)
        run->faults |= FAULT_LATE;
    if (run->resident_kb > resident_max_kb)
        run->faults |= FAULT_MEMORY;
}

/* The arguments of the program; the strings are in `text`. */
struct args {
    char text[ARGS_SIZE];
    size_t used, count;
    char *list[ARGS_MAX + 8]; /* ends with NULL */
};

static void add_arg(struct args *args, const char *word)
{
    size_t size = strlen(word) + 1;
    if (size > sizeof args->text - args->used || args->count + 1 == ARGS_MAX + 8)
        abort();
    args->list[args->count++] = memcpy(args->text + args->used, word, size);
    args->list[args->count] = NULL;
    args->used += size;
}

static void fill_args(const struct worker *worker, const char *const *list, size_t verb_number,
                      const char *store, bool json, bool ours, struct args *out)
{
    char timeout[48];
    long long timeout_ms = (long long)worker->timeout_ms;
    out->used = out->count = 0;
    add_arg(out, ours ? worker->self : worker->program);
    add_arg(out, ours ? "--client" : "--store");
    if (ours)
        add_arg(out, list[0]);
    add_arg(out, store);
    (void)snprintf(timeout, sizeof timeout, ours ? "%lld" : "--store-timeout=%lldms", timeout_ms);
    if (ours || worker->has_timeout_option)
        add_arg(out, timeout);
    if (json)
        add_arg(out, "--json");
    for (size_t i = 0; !ours && list[i] != NULL; i++)
        add_arg(out, strcmp(list[i], "$T") == 0 ? worker->tokens[verb_number] : list[i]);
}

/* The last number that was printed. */
static void note_token(const struct bytes *said, char *out, size_t size)
{
    const char *end = said->at + said->length;
    while (end > said->at && !isdigit((unsigned char)end[-1]))
        end--;
    const char *begin = end;
    while (begin > said->at && isdigit((unsigned char)begin[-1]))
        begin--;
    if (begin < end)
        (void)snprintf(out, size, "%.*s", (int)(end - begin), begin);
}

/* Its setup, once: the suite restores it afterwards. */
static bool prepare(struct worker *worker, size_t number)
{
    const struct suite *suite = worker->suite;
    const struct hostile_verb *verb = &hostile_verbs[number];
    char store[STORE_SIZE];
    static struct args args;
    suite->store_of(store, "", /* direct= */ true);
    for (size_t i = 0; i < SETUP_MAX && verb->setup[i][0] != NULL; i++) {
        struct run run = {0};
        struct hostile_verb plain = {.calls = SETUP_CALLS};
        fill_args(worker, verb->setup[i], number, store, false, false, &args);
        run_args(worker, &plain, args.list, &run);
        if (run.status != 0)
            fprintf(stderr, "# setup of %s: status %d: %s\n", verb->name, run.status,
                    run.said.at != NULL ? run.said.at : "");
        else
            note_token(&run.said, worker->tokens[number], sizeof worker->tokens[number]);
        bytes_free(&run.said);
        if (run.status != 0)
            return false;
    }
    suite->keep(number);
    return true;
}

/* As the suite is armed; `good` by itself. */
static void run_once(struct worker *worker, const struct hostile_case *one, bool good,
                     struct run *out)
{
    const struct suite *suite = worker->suite;
    const struct hostile_verb *verb = &hostile_verbs[one->verb];
    char store[STORE_SIZE];
    static struct args args;
    *out = (struct run){0};
    wire_drop(&worker->wire);
    suite->arm(NULL, 0, false);
    suite->restore(one->verb);
    suite->store_of(store, suite->modes[one->mode], /* direct= */ false);
    suite->arm(good ? NULL : &suite->variants[one->variant], one->nth, one->always);
    fill_args(worker, verb->args, one->verb, store, one->json && !verb->no_json, verb->is_ours,
              &args);
    run_args(worker, verb, args.list, out);
    out->replies = suite->replies(&out->hit);
    if (verb->writes && out->status == 0 && suite->is_unconfirmed != NULL &&
        suite->is_unconfirmed())
        out->faults |= FAULT_TRUST;
    wire_drop(&worker->wire);
}

/* Duration of the same run with a good server now. */
static int64_t good_ms(struct worker *worker, const struct hostile_case *one)
{
    struct run run;
    run_once(worker, one, /* good= */ true, &run);
    bytes_free(&run.said);
    return run.took_ms;
}

static bool is_ready(struct worker *worker, size_t verb)
{
    for (int tries = 0; tries < TRIES && !worker->is_ready[verb]; tries++) {
        worker->suite->arm(NULL, 0, false);
        worker->suite->restore(verb); /* empty until it was prepared */
        worker->is_ready[verb] = prepare(worker, verb);
    }
    return worker->is_ready[verb];
}

void worker_run(struct worker *worker, const struct hostile_case *one, bool good, struct run *out)
{
    if (!is_ready(worker, one->verb)) {
        *out = (struct run){.faults = FAULT_STATUS};
        return;
    }
    int tries_most = hostile_verbs[one->verb].plants != 0 ? 1 : TRIES;
    for (int tries = 0; tries < tries_most; tries++) {
        run_once(worker, one, good, out);
        bool late = (out->faults & FAULT_LATE) != 0;
        bool wrong = good && out->status != hostile_verbs[one->verb].good;
        if (late && out->took_ms <= out->most_ms + 2 * good_ms(worker, one)) {
            out->faults &= ~(unsigned)FAULT_LATE;
            late = false;
        }
        if ((!late && !wrong) || tries + 1 == tries_most)
            return;
        bytes_free(&out->said);
    }
}

/* ---- the worker ---- */

/* True if it has --store-timeout. Otherwise its timeout is the usual one. */
static bool knows_timeout(const char *program)
{
    char command[4096], line[512];
    bool knows = false;
    (void)snprintf(command, sizeof command, "'%s' help acquire", program);
    FILE *help = popen(command, "re"); // NOLINT(cert-env33-c): the path is the test's own
    if (help == NULL)
        return false;
    while (fgets(line, sizeof line, help) != NULL)
        knows = knows || strstr(line, "--store-timeout") != NULL;
    (void)pclose(help);
    return knows;
}

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[FOLDER_SIZE + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    bool good = fputs(text, file) >= 0;
    return fclose(file) == 0 && good;
}

static bool write_files(const struct worker *worker)
{
    char config[512];
    (void)snprintf(config, sizeof config,
                   "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                   "contexts: [{name: x, context: {cluster: x, user: x, namespace: blue}}]\n"
                   "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
                   "users: [{name: x, user: {token: t-secret}}]\n",
                   (unsigned)worker->wire.port);
    return write_file(worker->folder, "kubeconfig", config) &&
           write_file(worker->folder, "pod.yaml",
                      "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n"
                      "spec: {containers: [{name: c, image: i}]}\n");
}

bool worker_open(struct worker *worker, const struct suite *suite, const char *program,
                 const char *self, size_t number, int64_t usual_ms)
{
    *worker = (struct worker){.suite = suite, .program = program, .self = self};
    (void)snprintf(worker->folder, sizeof worker->folder, "%s/hostile-XXXXXX",
                   getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(worker->folder) == NULL || !wire_open(&worker->wire))
        return false;
    worker->has_timeout_option = knows_timeout(program);
    worker->timeout_ms = worker->has_timeout_option ? SHORT_TIMEOUT_MS : usual_ms;
    return write_files(worker) && suite->start(&worker->wire, worker->folder, number);
}

void worker_close(struct worker *worker)
{
    char command[FOLDER_SIZE + 16];
    worker->suite->stop();
    wire_close(&worker->wire);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", worker->folder);
    if (system(command) != 0) // NOLINT(cert-env33-c): the folder is the test's own
        fprintf(stderr, "# %s stays behind\n", worker->folder);
}
