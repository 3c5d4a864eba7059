/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of the program share. The command line decides nothing about locks: it turns
 * words into calls of leasehold.h, and reports into lines, JSON and exit statuses.
 *
 * A command is added in four steps:
 *   1. a file of its own with `const struct command command_NAME`: its words, options and function;
 *   2. one line in COMMAND_LIST below, its file in src/meson.build, its page in dist/meson.build;
 *   3. options that only it has are tables in its file, with their values in struct settings;
 *      shared ones are in cli_options.c. Help, man page, completion and config keys follow from
 * them;
 *   4. its rows in tests/e2e/exits.sh.
 * The function gets a struct visit and returns an exit status. It opens the store with
 * context_open_store(), tells refusals with output_report(), which also gives the status, and need
 * not free anything.
 */
#ifndef LEASEHOLD_FACE_CLI_CLI_H
#define LEASEHOLD_FACE_CLI_CLI_H

#include "base/text.h"
#include "leasehold.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- how the program ends ---- */

enum exit_status {
    EXIT_DONE = 0,
    EXIT_NO = 1, /* seen, mark: the other answer */
    EXIT_USAGE = 64,
    EXIT_MISMATCH = 65,
    EXIT_UNAVAILABLE = 69,
    EXIT_INTERNAL = 70,
    EXIT_COOLING = 73,
    EXIT_BUSY = 75,
    EXIT_LOST = 76,
    EXIT_DENIED = 77,
    EXIT_STALE = 78,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128 /* plus the signal's number */
};

/* ---- what was asked for ---- */

enum {
    META_PAIRS = 16,
    URL_SIZE = 4352, /* "file:" and a path */
};

enum cooldown_on { COOLDOWN_ON_SUCCESS, COOLDOWN_ON_ANY };
enum on_conflict { CONFLICT_WAIT, CONFLICT_RETRY, CONFLICT_FAIL, CONFLICT_STEAL_STALE };

/* The values of all options, whoever has them. Options say where theirs is. */
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
    const char *request_id, *status_file;
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
    bool at_once;
    bool if_held;                /* release */
    bool names;                  /* list */
    int64_t format;              /* help */
    int64_t flight, duration_ms; /* bench */
    int64_t rate;                /* collect */
    const char *kind;            /* doctor, collect */
};

enum value_kind {
    VALUE_FLAG,     /* none: a bool becomes true */
    VALUE_FIXED,    /* none: an int64_t becomes `least` */
    VALUE_TEXT,     /* const char * */
    VALUE_DURATION, /* int64_t, in milliseconds, from `least` to `most`; or a word's `word_value` */
    VALUE_COUNT,    /* int64_t from `least` to `most` */
    VALUE_CHOICE,   /* int64_t: the number of the word in `choices` */
    VALUE_TOKEN,    /* uint64_t above 0 */
    VALUE_RANGE,    /* two int64_t, one after the other: "1s:16s", within `least` and `most` */
    VALUE_PAIR      /* K=V, may be repeated: struct settings.meta */
};

struct option {
    const char *name; /* "ttl": the flag --ttl, and the key in the config file */
    char letter;      /* 'w': -w; 0: none */
    enum value_kind kind;
    const char *value;          /* how help calls it: "DUR"; NULL for a flag */
    const char *help;           /* one line */
    size_t at;                  /* offsetof(struct settings, …) */
    int64_t min, max;           /* durations in milliseconds */
    const char *const *choices; /* ends with NULL */
    const char *word;           /* a word that stands for a duration … */
    int64_t word_value;         /* … and for which */
    const char
        *default_value;      /* the default, as it would be typed; NULL: zero, or said in `does` */
    const char *environment; /* a variable that gives it too; NULL: none */
    bool flag_only;          /* no key in the config file: it makes sense in one call only */
};

/* Where a setting comes from, in the order of authority. */
enum setting_source { FROM_DEFAULT, FROM_CONFIG, FROM_ENVIRONMENT, FROM_FLAG };

struct context;

struct command {
    const char *name;
    const char *args;    /* what follows: "KEY..." */
    const char *summary; /* one line */
    const char *about;   /* for help and the man page: paragraphs, separated by an empty line */
    const char *example; /* for both, lines; NULL: none */
    const struct option *const *options; /* its own; ends with NULL; may be NULL */
    size_t min_args, max_args;
    bool takes_program; /* words behind "--" are a program to run, not more words */
    int (*run)(struct context *context);
};

/* One line makes a command known. */
#define COMMAND_LIST(X) \
    X(run)              \
    X(acquire)          \
    X(renew)            \
    X(release)          \
    X(status)           \
    X(list)             \
    X(watch)            \
    X(history)          \
    X(break)            \
    X(clear)            \
    X(check)            \
    X(once)             \
    X(seen)             \
    X(mark)             \
    X(watermark)        \
    X(k8s_run)          \
    X(name)             \
    X(collect)          \
    X(bench)            \
    X(doctor)           \
    X(help)             \
    X(version)

#define COMMAND_DECLARE(name) extern const struct command command_##name;
COMMAND_LIST(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/* One call of the program. */
struct context {
    const struct command *command;
    struct settings settings;
    const char **args; /* without the command and the options */
    size_t arg_count;
    enum setting_source store_from;
    char **program;       /* behind "--", ends with NULL; NULL: there was no "--" */
    char url[URL_SIZE];   /* of the store, once context_prepare_store() was called … */
    char shown[URL_SIZE]; /* … and as it may be shown */
    struct lh_client *client;
    const char *effect;            /* what break or release did, for JSON; NULL: neither */
    bool interactive;              /* a person sees our stderr, and wants to … */
    char awaited_key[LH_KEY_SIZE]; /* … know for which key we stand in line */
};

/* ---- commands.c ---- */

/* By number, in the order of the list; NULL behind the last. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name);

/* ---- cli_options.c, parse.c, config.c ---- */

/* How an object of a cluster tells its end: k8s-run and collect. */
extern const struct option option_done_when, option_failed_when, option_ended_at;
extern const struct option option_store, option_store_timeout, option_config, option_json,
    option_quiet, option_verbose, option_help;
/* Of taking: */
extern const struct option option_ttl, option_wait, option_no_wait, option_shared, option_limit,
    option_priority, option_cooldown, option_on_conflict, option_retries, option_backoff,
    option_holder, option_meta, option_lock_delay, option_conflict_status, option_request_id,
    option_cached, option_status_file;
/* Of the commands that name a grant: */
extern const struct option option_token;
/* Of what operators do: */
extern const struct option option_reason;

/* For a command's table of options: those of taking, which `run` and `acquire` share. */
#define ACQUIRE_OPTIONS                                                                          \
    &option_ttl, &option_wait, &option_no_wait, &option_shared, &option_limit, &option_priority, \
        &option_cooldown, &option_on_conflict, &option_retries, &option_backoff, &option_holder, \
        &option_meta, &option_lock_delay, &option_conflict_status, &option_request_id,           \
        &option_cached, &option_status_file

/* Those that every command has; ends with NULL. */
extern const struct option *const global_options[];

/* Sets it from text, wherever that stood; false when it is no good, and then `why` says it. */
bool option_set(const struct option *option, const char *value, struct settings *settings,
                struct text *why);
bool option_takes_value(const struct option *option);

/* Finds command, options and words, and puts together what flags, environment, config file and
 * defaults say. EXIT_DONE, or what to end with: then it was said why. */
int parse_command_line(int argc, char **argv, struct context *context);

/* Applies the file's keys. False when it is no good, and then `why` says file, line and reason. */
bool config_apply(const char *path, struct settings *settings, struct text *why);

/* ---- open_store.c ---- */

/* Finds out which store is meant; context_prepare_store() also makes its folder if it is the
 * default. EXIT_DONE or not. */
int context_find_store(struct context *context);
int context_prepare_store(struct context *context);
/* The same, and opens it: visit->client, without a thread of its own. It is closed by main(). */
int context_open_store(struct context *context);
/* Who we are to others; NULL: the library has a name for that. */
const char *context_holder(const struct context *context);
/* Where the store is when nobody says: of root, or of everybody else. False: no home is known. */
bool default_store_path(bool root, char *out, size_t size);
/* The default stores that there are, or may be: root's, that of users, and that of the user who
 * called sudo. Root and users do not see each other's locks there. */
enum { DEFAULT_STORES = 3 };
struct default_store {
    char path[PATH_MAX];
    const char *users; /* "root uses" … */
    bool hidden;       /* we are not permitted to look, so it may be there */
};
size_t default_stores(struct default_store out[DEFAULT_STORES]);
/* Tells on a terminal, or with --verbose, that there is another one than the default that is used.
 */
void context_warn_other_stores(const struct context *context);
/* "there is another default store, …": one line without its end. */
void default_store_describe(const struct default_store *other, struct text *out);
/* The path that a file: URL names, once context_prepare_store() was called; NULL: it is of another
 * kind. */
const char *context_store_path(const struct context *context);
/* Where the program is that was given behind "--"; otherwise says why it cannot be run, and `so`
 * what that means: EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE. */
int context_find_program(const struct context *context, char *path, size_t size, const char *so);

/* ---- acquire_keys.c ---- */

/* What the options of taking say. The caller adds bound or not, and whom to tell of a loss. */
void acquire_fill_options(const struct context *context, struct lh_acquire_options *out);
/*
 * Takes the words' keys, all or none, as --wait and --on-conflict say, and shows on a terminal what
 * is waited for. 0: *out_lease is held. Otherwise the exit status, and it was said why; a signal
 * gives the place up and ends with 128 plus its number.
 */
int acquire_keys(struct context *context, const char *const *keys, size_t count,
                 const struct lh_acquire_options *options, struct lh_lease **out_lease);
/* The same for the claim of an id. EXIT_DONE: it was answered; without a lease the report says how,
 * and nothing was said. Otherwise the status of a signal. */
int acquire_claim(struct context *context, const char *id, const struct lh_once_options *options,
                  struct lh_lease **out_lease, struct lh_once *out_once,
                  struct lh_report *out_report);
/* 1 to 16 good keys, none of them twice? Otherwise says why not: EXIT_USAGE. */
int check_keys(const struct context *context, const char *const *keys, size_t count);

/* ---- output.c ---- */

/* The status that belongs to an outcome: the one table. */
int outcome_exit_status(enum lh_outcome outcome);
/* A refusal or an error, on stderr, for people or as JSON, and in the status file. `key` may be
 * NULL. Returns the status, which --conflict-exit-code may have changed. */
int output_report(const struct context *context, const char *key, const struct lh_report *report);
/* The same for mistakes on the command line; EXIT_USAGE. */
int usage_error(const struct context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Trouble of the program or its surroundings, with its status. */
int output_error(const struct context *context, enum lh_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* For --verbose only, on stderr. */
void output_detail(const struct context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum { LINE_SIZE = 16384 };

/* A key as JSON, and as a line for people. `outcome` goes before it, unless NULL. In a history the
 * view is as old as its record (`past`). */
void view_to_json(const struct context *context, const struct lh_view *view, const char *outcome,
                  bool past, struct text *out);
/* Prints a line, its control characters replaced: whatever is in it may be from outside. */
void output_line(struct text *line, FILE *to);
void view_to_line(const struct lh_view *view, struct text *out);
/* A refusal as JSON. `key` may be NULL. */
void report_to_json(const struct context *context, const char *key, const struct lh_report *report,
                    struct text *out);
/* Prints either of them on stdout. */
void output_view(const struct context *context, const struct lh_view *view);
/* "renewed: KEY" on stdout, unless --quiet; with --json the key as it stands now. The status. */
int output_done(struct context *context, const char *what, const char *key);
/* What a call did that has more than one way to succeed: the key's state, the report's text and the
 * hint on stdout; with --json the effect and the key as it stands now. The status. */
int output_effect(struct context *context, const char *key, const struct lh_report *report,
                  const char *hint);
/* The one word of a refusal; NULL for none. */
const char *report_refusal_word(const struct lh_report *report);
/* Lines of JSON into --status-file, if there is one; a file is replaced, never half written.
 * EXIT_DONE or the status, and it was said why. */
int write_status_file(const struct context *context, const char *lines);
/* Milliseconds ago as "2026-01-02T03:04:05.678Z"; empty when unknown. */
const char *format_time_ago(int64_t ago_ms, char out[32]);
/* When the record was written, likewise, by the store's own clock if that is known. */
const char *format_written_time(const struct lh_view *view, char out[32]);

#endif
