/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared declarations of the command-line program. It makes no decisions about locks: it translates
 * arguments into calls of the public headers, and reports into text, JSON and exit statuses. Files
 * here include the public headers, run, wire and base only.
 *
 * To add a command:
 *   1. write a file with `const struct command command_NAME`: texts, options and function;
 *   2. add it to COMMAND_LIST below, its file to src/meson.build, its page to dist/meson.build;
 *   3. define its own options in that file, with their values in struct settings; shared options
 *      are in cli_options.c. Help, man page, completion and config keys derive from these tables;
 *   4. add its rows to tests/e2e/exits.sh.
 * The function takes a struct context and returns an exit status. It opens the store with
 * context_open_store(), which main() closes, and reports refusals with output_report(), which also
 * returns the status. It need not free anything.
 */
#ifndef LEASEHOLD_FACE_CLI_CLI_H
#define LEASEHOLD_FACE_CLI_CLI_H

#include "base/text.h"
#include "leasehold.h"
#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- exit statuses ---- */

enum exit_status {
    EXIT_DONE = 0,
    EXIT_NO = 1, /* seen: new; mark: not new */
    EXIT_USAGE = 64,
    EXIT_MISMATCH = 65,
    EXIT_UNAVAILABLE = 69,
    EXIT_INTERNAL = 70,
    EXIT_COOLING = 73,
    EXIT_BUSY = 75,
    EXIT_LOST = 76,
    EXIT_DENIED = 77,
    EXIT_STALE = 78,
    EXIT_TIMEOUT = 124, /* --max-hold; as timeout(1) */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128 /* plus the signal number */
};

/* ---- settings and options ---- */

enum {
    META_PAIRS = 16,
    URL_SIZE = 4352, /* "file:" and a path */
};

enum cooldown_on { COOLDOWN_ON_SUCCESS, COOLDOWN_ON_ANY };
enum on_conflict { CONFLICT_WAIT, CONFLICT_RETRY, CONFLICT_FAIL, CONFLICT_STEAL_STALE };

/* The values of the options of all commands. struct option.at is the offset of each. */
struct settings {
    const char *store, *config;
    int64_t store_timeout_ms;
    bool json, quiet, verbose, help;
    const char *holder;
    int64_t ttl_ms, renewal_ms, wait_ms, cooldown_ms, lock_delay_ms;
    int64_t limit, priority, retries, conflict_status;
    int64_t backoff_first_ms, backoff_max_ms;
    int64_t on_conflict; /* enum on_conflict */
    bool shared, cached;
    const char *request_id, *status_file, *metrics_file;
    int64_t on_lost, kill_grace_ms; /* run */
    int64_t cooldown_on;            /* run: enum cooldown_on */
    struct lh_meta meta[META_PAIRS];
    size_t meta_count;
    uint64_t token;
    const char *reason;
    const char *key, *fence;                               /* check */
    const char *payload_hash, *result, *watermark, *until; /* once, mark */
    int64_t keep_ms;
    bool keep_failures;
    const char *to, *expected; /* watermark */
    int64_t overlap_ms;
    const char *target, *file, *holder_label, *done_when, *failed_when, *ended_at; /* k8s-run */
    int64_t time_limit_ms, until_step;
    bool finalizer, remove;
    const char *repository, *label, *done_label; /* claim */
    int64_t order, claims_max;                   /* claim: enum lh_claim_order; 0: no limit */
    bool at_once;
    bool if_held;                   /* release */
    bool until_signal;              /* hold */
    int64_t pid;                    /* acquire; 0: none */
    const char *shell;              /* run, once: -c; NULL: none */
    int64_t max_hold_ms;            /* run, once; 0: none */
    bool names;                     /* list */
    int64_t sort, state;            /* list: enum list_sort; index of a state, 0: any */
    int64_t format;                 /* help */
    int64_t flight, duration_ms;    /* bench */
    int64_t rate;                   /* collect */
    const char *kind;               /* doctor, collect */
    uint64_t above;                 /* epoch: a token; 0: none */
    const char *listen, *unix_path; /* serve … */
    const char *http, *hosts;
    const char *metrics_prefix;
    const char *tls_cert, *tls_key, *tls_client_ca;
    bool stdio;
    int64_t connections_max;
    const char *tokens, *unix_mode; /* serve */
    bool insecure;
#ifdef LH_MUTANTS
    const char *planted; /* serve */
#endif
};

enum value_kind {
    VALUE_FLAG,     /* none: a bool becomes true */
    VALUE_CLEAR,    /* none: a bool becomes false */
    VALUE_FIXED,    /* none: an int64_t becomes `min` */
    VALUE_TEXT,     /* const char * */
    VALUE_DURATION, /* int64_t, in milliseconds, from `min` to `max`; or `word_value` for `word` */
    VALUE_COUNT,    /* int64_t from `min` to `max` */
    VALUE_CHOICE,   /* int64_t: index in `choices` */
    VALUE_TOKEN,    /* uint64_t above 0 */
    VALUE_RANGE,    /* two consecutive int64_t: "1s:16s", each from `min` to `max` */
    VALUE_PAIR      /* K=V, repeatable: struct settings.meta */
};

struct option {
    const char *name;    /* "ttl": the flag --ttl, and the key in the config file */
    char letter;         /* 'w': -w; 0: none */
    const char *aliases; /* further flags, as typed: "-e --timeout"; NULL: none */
    enum value_kind kind;
    const char *value;          /* its name in help: "DUR"; NULL for a flag */
    const char *help;           /* one line */
    size_t at;                  /* offsetof(struct settings, …) */
    int64_t min, max;           /* durations in milliseconds */
    const char *const *choices; /* ends with NULL */
    const char *word;           /* an alias of a duration; NULL: none … */
    int64_t word_value;         /* … and that duration */
    const char *default_value;  /* as it would be typed; NULL: zero, or described in `help` */
    const char *environment;    /* variable that sets it; NULL: none */
    bool flag_only;             /* not allowed in the config file */
};

/* Where a setting comes from; later ones take precedence. */
enum setting_source { FROM_DEFAULT, FROM_CONFIG, FROM_ENVIRONMENT, FROM_FLAG };

struct context;

struct command {
    const char *name;
    const char *args;    /* its arguments: "KEY..." */
    const char *summary; /* one line */
    const char *about;   /* help and man page: paragraphs, separated by an empty line */
    const char *example; /* help and man page: lines; NULL: none */
    const struct option *const *options; /* its own; ends with NULL; may be NULL */
    size_t min_args, max_args;
    bool takes_program; /* arguments after "--" are a program to run */
    int (*run)(struct context *context);
};

/* All commands, in the order of help. */
#define COMMAND_LIST(X) \
    X(run)              \
    X(hold)             \
    X(acquire)          \
    X(renew)            \
    X(release)          \
    X(status)           \
    X(list)             \
    X(watch)            \
    X(history)          \
    X(why)              \
    X(break)            \
    X(clear)            \
    X(check)            \
    X(once)             \
    X(seen)             \
    X(mark)             \
    X(watermark)        \
    X(claim)            \
    X(k8s_run)          \
    X(serve)            \
    X(name)             \
    X(collect)          \
    X(epoch)            \
    X(bench)            \
    X(doctor)           \
    X(help)             \
    X(version)

#define COMMAND_DECLARE(name) extern const struct command command_##name;
COMMAND_LIST(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/* One invocation of the program. */
struct context {
    const struct command *command;
    struct settings settings;
    const char **args; /* without the command name and the options */
    size_t arg_count;
    enum setting_source store_from;
    char **program;       /* after "--", ends with NULL; NULL: no "--" was given */
    char url[URL_SIZE];   /* of the store, after context_find_store() … */
    char shown[URL_SIZE]; /* … and the same without secrets */
    struct lh_client *client;
    const char *effect;            /* of break or release, for JSON; otherwise NULL */
    bool interactive;              /* stderr is a terminal, without --quiet or --json */
    char awaited_key[LH_KEY_SIZE]; /* the key whose queue we are in */
    int cancel_fd;                 /* leave the queue when it is readable; 0: none … */
    char cancel_cause[64];         /* … and what has happened then */
};

/* ---- commands.c ---- */

/* By index in COMMAND_LIST; NULL past the end. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name);

/* ---- cli_options.c, parse.c, config.c ---- */

/* How to recognize the end of a Kubernetes object: k8s-run and collect. */
extern const struct option option_done_when, option_failed_when, option_ended_at;
extern const struct option option_store, option_store_timeout, option_config, option_json,
    option_quiet, option_verbose, option_help;
/* Of run, hold and acquire: */
extern const struct option option_ttl, option_wait, option_no_wait, option_shared, option_limit,
    option_priority, option_cooldown, option_on_conflict, option_retries, option_backoff,
    option_holder, option_meta, option_lock_delay, option_conflict_status, option_request_id,
    option_cached, option_status_file, option_metrics_file, option_exclusive;
/* Of run and once: */
extern const struct option option_command, option_max_hold;
/* Of commands on an existing grant: */
extern const struct option option_token;
/* Of commands for operators: */
extern const struct option option_reason;

/* The options that `run`, `hold` and `acquire` share, for their tables. */
#define ACQUIRE_OPTIONS                                                                            \
    &option_ttl, &option_wait, &option_no_wait, &option_shared, &option_exclusive, &option_limit,  \
        &option_priority, &option_cooldown, &option_on_conflict, &option_retries, &option_backoff, \
        &option_holder, &option_meta, &option_lock_delay, &option_conflict_status,                 \
        &option_request_id, &option_cached, &option_status_file, &option_metrics_file

/* The options of every command; ends with NULL. */
extern const struct option *const global_options[];

/* Parses a value, from any source, into settings. False if it is invalid: `why` has the reason. */
bool option_set(const struct option *option, const char *value, struct settings *settings,
                struct text *why);
bool option_takes_value(const struct option *option);
/* Copies the next alias of an option, with its dashes, and moves *at behind it. False at the end.
 * *at starts as option->aliases. */
enum { ALIAS_SIZE = 32 };
bool option_next_alias(const char **at, char out[ALIAS_SIZE]);
/* Writes the help text of an option, with its aliases. */
void option_describe(const struct option *option, struct text *out);

/* Parses the arguments, then merges flags, environment, config file and defaults into settings.
 * EXIT_DONE, or another exit status after printing the error. */
int parse_command_line(int argc, char **argv, struct context *context);

/* Applies a config file. False if it is invalid: `why` has file, line and reason. */
bool config_apply(const char *path, struct settings *settings, struct text *why);

/* ---- open_store.c ---- */

/* Sets context->url and shown; context_prepare_store() also creates the directory of the default
 * store. EXIT_DONE, or another exit status after printing the error. */
int context_find_store(struct context *context);
int context_prepare_store(struct context *context);
/* Prepares the store and opens context->client, without a thread of its own. main() closes it. */
int context_open_store(struct context *context);
/* The same for a command that acquires: --metrics-file counts a store that cannot be opened. */
int context_open_store_to_acquire(struct context *context);
/* The holder name; NULL: use the default of the library. */
const char *context_holder(const struct context *context);
/* The path of the default store of root or of other users. False if no home directory is known. */
bool default_store_path(bool root, char *out, size_t size);
/* The default stores that exist or may exist: of root, of the user, and of the user who called
 * sudo. Root and other users do not share locks by default. */
enum { DEFAULT_STORES = 3 };
struct default_store {
    char path[PATH_MAX];
    const char *users; /* "root uses" … */
    bool hidden;       /* permission denied: it may exist */
};
size_t default_stores(struct default_store out[DEFAULT_STORES]);
/* Warns, on a terminal or with --verbose, that another default store exists beside the one in use.
 */
void context_warn_other_stores(const struct context *context);
/* "there is another default store, …", without a newline. */
void default_store_describe(const struct default_store *other, struct text *out);
/* The variable or URL that an unavailable store lacks, in one clause; NULL: nothing is known. */
const char *context_store_hint(const struct context *context, const struct lh_report *report);
/* The path of a file: store, after context_find_store(); NULL for other stores. */
const char *context_store_path(const struct context *context);
/* Finds the program given after "--". If it cannot be run, prints the reason and the consequence
 * `so`, and returns EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE. */
int context_find_program(const struct context *context, char *path, size_t size, const char *so);

/* ---- acquire_keys.c ---- */

/* Copies ACQUIRE_OPTIONS from the settings. The caller sets `unbound`, `on_lost` and `user`. */
void acquire_fill_options(const struct context *context, struct lh_acquire_options *out);
/*
 * Acquires the keys, all or none, as --wait and --on-conflict specify, and shows on a terminal what
 * it waits for. EXIT_DONE: *out_lease is held. Otherwise the exit status, after printing why. A
 * signal leaves the queue and returns 128 plus its number.
 */
int acquire_keys(struct context *context, const char *const *keys, size_t count,
                 const struct lh_acquire_options *options, struct lh_lease **out_lease);
/* Claims an id likewise. EXIT_DONE: the store replied; if *out_lease is NULL, *out_report has the
 * refusal, which is not printed. Otherwise the status of a signal. */
int acquire_claim(struct context *context, const char *id, const struct lh_once_options *options,
                  struct lh_lease **out_lease, struct lh_once *out_once,
                  struct lh_report *out_report);
/* Prints the tokens to stdout, one per line, or objects with --json, and writes objects to the
 * status file. EXIT_DONE, or the exit status after printing why; then the caller must abandon. */
int output_grants(struct context *context, const struct lh_lease *lease);
/* EXIT_DONE if there are at most 16 keys, all valid and distinct; otherwise a usage error. */
int check_keys(const struct context *context, const char *const *keys, size_t count);

/* ---- output.c ---- */

/* The exit status of an outcome. This is the only such table. */
int outcome_exit_status(enum lh_outcome outcome);
/* Prints a refusal or an error to stderr, as text or JSON, and writes the status file. `key` may be
 * NULL. Returns the exit status; --conflict-exit-code replaces that of busy. */
int output_report(const struct context *context, const char *key, const struct lh_report *report);
/* The same for errors in arguments or configuration; returns EXIT_USAGE. */
int usage_error(const struct context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for errors of the program or its environment; returns the status of the outcome. */
int output_error(const struct context *context, enum lh_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a library report as the program's own error, without the outcome before the text. Returns
 * the exit status. */
int output_plain_report(const struct context *context, const struct lh_report *report);
/* Prints to stderr, with --verbose only. */
void output_detail(const struct context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints to stderr, as text or as an object with "warning". */
void output_warning(const struct context *context, const char *message);
/* With --verbose: the keys were released, and how long they were held. */
void output_released(const struct context *context, const char *keys, int64_t held_ms);
enum { LINE_SIZE = 16384 };

/* cmd_status.c: adds the member "queue", a list of all waiters. */
void waiters_to_json(const struct lh_view *view, struct text *out);
/* Formats a key as JSON. `outcome` comes first, unless NULL. `past`: the view is a history entry,
 * whose times are relative to the time of its write. */
void view_to_json(const struct context *context, const struct lh_view *view, const char *outcome,
                  bool past, struct text *out);
/* The same without the closing brace, so that the caller can add members. */
void view_to_open_json(const struct context *context, const struct lh_view *view,
                       const char *outcome, bool past, struct text *out);
/* The state; for an id running, done or failed. */
const char *view_state_name(const struct lh_view *view);
/* Prints a line and replaces its control characters, since it may contain foreign data. */
void output_line(struct text *line, FILE *to);
/* Adds the duration between the two texts; nothing if it is negative, which means unknown. */
void output_add_duration(struct text *out, const char *before, int64_t length_ms,
                         const char *after);
void view_to_line(const struct lh_view *view, struct text *out);
/* The same for a terminal: a line that is wider than `columns` has its key shortened in the middle.
 */
void view_to_line_within(const struct lh_view *view, size_t columns, struct text *out);
/* Formats a refusal as JSON. `key` may be NULL. */
void report_to_json(const struct context *context, const char *key, const struct lh_report *report,
                    struct text *out);
/* Prints a key to stdout, as text or JSON. */
void output_view(const struct context *context, const struct lh_view *view);
/* Prints "renewed: KEY", unless --quiet; with --json the current state of the key. The status. */
int output_done(struct context *context, const char *what, const char *key);
/* Prints the result of a command that can succeed in several ways: the state of the key, the text
 * of the report and the hint; with --json the effect and the current state. The status. */
int output_effect(struct context *context, const char *key, const struct lh_report *report,
                  const char *hint);
/* The refusal word of JSON output; NULL: none. */
const char *report_refusal_word(const struct lh_report *report);
/* Writes lines of JSON to --status-file, if given. A regular file is replaced atomically.
 * EXIT_DONE, or another exit status after printing the error. */
int write_status_file(const struct context *context, const char *lines);
/* Milliseconds since 1970; -1: unknown. */
int64_t wall_clock_ms(void);
/* Such a time as "2026-01-02T03:04:05.678Z"; "" if it is unknown. */
const char *format_time(int64_t at_ms, char out[32]);
/* The time `ago_ms` ago as "2026-01-02T03:04:05.678Z"; "" if it is unknown. */
const char *format_time_ago(int64_t ago_ms, char out[32]);
/* The time at which the record was written, by the clock of the store if it is known; now if the
 * time is unknown. As text "" then. */
int64_t view_written_ms(const struct lh_view *view);
const char *format_written_time(const struct lh_view *view, char out[32]);

#endif
