/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile servers: a table of variants (what a server does wrong), a table of verbs (the commands
 * of the program), and every pair of them at several depths: the nth reply is hostile, the ones
 * before it are good. hostile_redis.c proxies a real Redis server and changes its replies;
 * hostile_k8s.c and hostile_github.c reply from servers of their own (hostile_api.c,
 * hostile_hub.c). Lock semantics are not judged here, only that no server crashes, blocks, floods
 * or deceives the program.
 */
#ifndef LEASEHOLD_TESTS_HOSTILE_H
#define LEASEHOLD_TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CONNS_MAX = 24,
    SETUP_MAX = 3,
    ARGS_MAX = 20,
    MODES_MAX = 8,
    FOLDER_SIZE = 128,
    STORE_SIZE = 256,
};

/* ---- hostile_wire.c: connections of one server, in one thread ---- */

struct bytes {
    char *at;
    size_t length, room;
};

void bytes_add(struct bytes *bytes, const char *from, size_t length);
void bytes_add_text(struct bytes *bytes, const char *text);
/* Removes bytes from the front. */
void bytes_take(struct bytes *bytes, size_t length);
void bytes_free(struct bytes *bytes);

enum ending { END_NOT, END_CLOSE, END_RESET, END_STALL };

struct wire;

/* One connection of the program; `out` is sent as the flags say. */
struct conn {
    struct wire *wire;
    int file, up; /* -1: none; `up` is the real server behind it */
    struct bytes in, up_in, out;
    size_t sent;         /* of `out` */
    const char *endless; /* repeated once `out` is empty; NULL: no */
    size_t endless_length;
    int64_t drips_at_ms; /* one byte at a time, the next one then; 0: does not drip */
    enum ending ending;  /* once `out` is empty */
    bool deaf;           /* the rest of the connection is ignored */
    bool watches;        /* hostile_k8s.c: an open watch … */
    char watched[64];    /* … of this collection */
};

struct wire {
    int listening;
    uint16_t port;
    struct conn conns[CONNS_MAX];
    bool (*opened)(struct conn *conn); /* false: the connection is closed */
    void (*came)(struct conn *conn);   /* called when new bytes are in `in` or `up_in` */
    void *owner;
};

bool wire_open(struct wire *wire);
void wire_close(struct wire *wire);
/* Closes all connections, keeps the port. */
void wire_drop(struct wire *wire);
/* Serves until a descriptor is ready or that time has come; marks the ready ones. */
struct pollfd;
void wire_serve(struct wire *wire, struct pollfd *files, size_t count, int64_t until_ms);
void conn_drip(struct conn *conn);
int wire_connect(uint16_t port);
int64_t wire_now_ms(void);

/* ---- verbs ---- */

enum { ON_NEITHER = 0, ON_REDIS = 1, ON_K8S = 2, ON_GITHUB = 4 };

struct hostile_verb {
    const char *name;
    const char *setup[SETUP_MAX][ARGS_MAX]; /* run before, with a good server */
    const char *args[ARGS_MAX];             /* "$T" is the token that the last setup printed */
    const char *statuses;                   /* modes that only this verb has: "1 64" */
    int64_t takes_ms;                       /* beyond the store timeouts, by its own options */
    int64_t stop_after_ms;                  /* SIGTERM then; 0: never */
    unsigned calls;                         /* each has a timeout of its own */
    unsigned stores;
    unsigned plants;     /* the fault that it contains on purpose … */
    unsigned planted_on; /* … with these stores; 0: with all */
    int good;            /* the status with a good server */
    bool writes;         /* status 0 says that its last write happened */
    bool is_ours;        /* a stand-in: this program with --client */
    bool no_json;
};

extern const struct hostile_verb hostile_verbs[];
extern const size_t hostile_verb_count;

/* ---- variants ---- */

/* The action on the nth reply. `text` and `more` are its arguments. */
struct variant {
    const char *name;
    int action;
    const char *text, *more;
    int64_t number;
    enum ending ending;
    size_t length; /* of the text when it contains NUL; 0: it does not */
};

/* ---- one run ---- */

enum fault {
    FAULT_CRASH = 1,
    FAULT_LATE = 2,
    FAULT_STATUS = 4,
    FAULT_CONTROL = 8,
    FAULT_MEMORY = 16,
    FAULT_TRUST = 32, /* success, although no reply confirmed the write */
};

struct run {
    unsigned faults;
    int status; /* the exit status, or 128 and the signal */
    int64_t took_ms, most_ms;
    long resident_kb;
    unsigned replies; /* of the server; the hostile one is among them when hit */
    bool hit;
    struct bytes said; /* stdout and stderr, the beginning */
};

/* The part that differs between suites. */
struct suite {
    const char *name;
    unsigned store; /* ON_REDIS, ON_K8S or ON_GITHUB */
    const struct variant *variants;
    size_t variant_count;
    const char *const *modes; /* appended to the URL */
    size_t mode_count;
    /* Called once in each worker; false: the suite cannot run. */
    bool (*start)(struct wire *wire, const char *folder, size_t worker);
    void (*stop)(void);
    /* The store's URL for a run; `direct` is for setups. */
    void (*store_of)(char out[STORE_SIZE], const char *mode, bool direct);
    void (*keep)(size_t verb);    /* after the setup of that verb: saves the current records */
    void (*restore)(size_t verb); /* restores the records after its setup */
    /* From now on the nth reply is hostile, or all from it on. NULL: none is. */
    void (*arm)(const struct variant *variant, unsigned nth, bool always);
    unsigned (*replies)(bool *out_hit); /* since then */
    /* True if no reply has confirmed the last write since then. NULL: unknown. */
    bool (*is_unconfirmed)(void);
};

/* State of a worker. */
struct worker {
    const struct suite *suite;
    struct wire wire;
    const char *program, *self;
    char folder[FOLDER_SIZE];
    int64_t timeout_ms; /* of the store */
    bool has_timeout_option;
    bool is_ready[64]; /* verbs whose setup is done, by number of the verb … */
    char tokens[64][32];
};

/* One of suite's cases; `depth` counts from 0. */
struct hostile_case {
    size_t variant, verb, mode;
    unsigned nth;
    bool always, json;
};

/* `usual_ms` is the timeout of a program that has no option for it. */
bool worker_open(struct worker *worker, const struct suite *suite, const char *program,
                 const char *self, size_t number, int64_t usual_ms);
void worker_close(struct worker *worker);
/* `variant` of the case is ignored with `good`. */
void worker_run(struct worker *worker, const struct hostile_case *one, bool good, struct run *out);

/* ---- the suite ---- */

int hostile_main(const struct suite *suite, int argc, char **argv);
/* --client VERB URL TIMEOUT_MS: stand-ins that use the library, or that are wrong on purpose. */
int hostile_client(char **args);

#endif
