/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See session_watch.h. Only a signal ends a blocking fcntl(), and a library has no signal of its
 * own; so the thread is cancelled there. Cancellation is disabled everywhere else. The frames of
 * the cancelled thread have no addressed variables: AddressSanitizer would report their reuse.
 */
#include "disk/session_watch.h"

#include "disk/disk_internal.h"
#include "disk/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

static int watch_lock(struct session_watch *watch, int command, short type)
{
    struct flock *lock = &watch->lock;
    int result;
    lock->l_type = type;
    lock->l_whence = SEEK_SET;
    lock->l_start = (off_t)session_byte(watch->blocked);
    lock->l_len = 1;
    do
        result = fcntl(watch->file, command, lock);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Sleeps, without the mutex; false if the watch has changed meanwhile. */
__attribute__((noinline)) static bool watch_settles(struct session_watch *watch)
{
    struct timespec until;
    uint64_t serial = watch->serial;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SESSION_WATCH_SETTLE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    for (int error = 0; error == 0 && !watch->ending;)
        error = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    return !watch->ending && watch->serial == serial;
}

/* Blocks, without the mutex, until the session has ended. True if it is still the watched one. */
static bool watch_blocks(struct session_watch *watch)
{
    uint64_t session = watch->session;
    watch->blocked = session;
    (void)pthread_mutex_unlock(&watch->mutex);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    int result = watch_lock(watch, F_OFD_SETLKW, F_RDLCK);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)watch_lock(watch, F_OFD_SETLK, F_UNLCK);
    (void)pthread_mutex_lock(&watch->mutex);
    watch->blocked = 0;
    if (watch->session != session)
        return false;
    watch->session = 0;
    watch->ended = result == 0; /* after an error the fallback poll remains */
    return watch->ended;
}

static void *watch_main(void *argument)
{
    struct session_watch *watch = argument;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)pthread_mutex_lock(&watch->mutex);
    while (!watch->ending) {
        watch->idle = watch->session == 0;
        if (watch->idle)
            (void)pthread_cond_wait(&watch->changed, &watch->mutex);
        else if (watch_settles(watch) && watch_blocks(watch)) {
            (void)pthread_mutex_unlock(&watch->mutex);
            wakeup_send(watch->disk, watch->own, "");
            (void)pthread_mutex_lock(&watch->mutex);
        }
    }
    (void)pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

/* At the first cancellation glibc loads this library, and ends the process if it cannot, as after a
 * chroot(). */
static void *unwinder;

static void watch_load_unwinder(void)
{
    unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY);
}

static bool watch_can_cancel(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, watch_load_unwinder) == 0 && unwinder != NULL;
}

void session_watch_init(struct session_watch *watch, const struct disk *disk, int file,
                        uint64_t own)
{
    pthread_condattr_t attributes;
    *watch = (struct session_watch){.disk = disk, .file = file, .own = own};
    if (file < 0 || disk_real(disk) == NULL || !watch_can_cancel() ||
        pthread_condattr_init(&attributes) != 0)
        return;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    watch->ready = pthread_mutex_init(&watch->mutex, NULL) == 0 &&
                   pthread_cond_init(&watch->changed, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
}

/* The thread receives no signal. */
static void session_watch_start(struct session_watch *watch)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->runs = pthread_create(&watch->thread, NULL, watch_main, watch) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void session_watch_stop(struct session_watch *watch)
{
    (void)pthread_mutex_lock(&watch->mutex);
    watch->ending = true;
    (void)pthread_cond_signal(&watch->changed);
    (void)pthread_mutex_unlock(&watch->mutex);
    (void)pthread_cancel(watch->thread);
    (void)pthread_join(watch->thread, NULL);
    if (watch->blocked != 0) /* the lock may have been granted just before the cancellation */
        (void)watch_lock(watch, F_OFD_SETLK, F_UNLCK);
    watch->blocked = 0;
    watch->ending = watch->runs = false;
}

void session_watch_done(struct session_watch *watch)
{
    if (!watch->ready || disk_real(watch->disk) == NULL)
        return; /* a forked child has no such thread, and the mutex may be locked */
    if (watch->runs)
        session_watch_stop(watch);
    (void)pthread_mutex_destroy(&watch->mutex);
    (void)pthread_cond_destroy(&watch->changed);
    watch->ready = false;
}

void session_watch_set(struct session_watch *watch, uint64_t session)
{
    if (!watch->ready || (session == 0 && !watch->runs))
        return;
    (void)pthread_mutex_lock(&watch->mutex);
    bool outdated = session != 0 && watch->blocked != 0 && watch->blocked != session;
    watch->session = session;
    watch->ended = false;
    watch->serial++;
    if (watch->idle)
        (void)pthread_cond_signal(&watch->changed);
    (void)pthread_mutex_unlock(&watch->mutex);
    if (outdated)
        session_watch_stop(watch);
    if (session != 0 && !watch->runs)
        session_watch_start(watch);
}

bool session_watch_has_ended(struct session_watch *watch)
{
    if (!watch->runs)
        return false;
    (void)pthread_mutex_lock(&watch->mutex);
    bool ended = watch->ended;
    (void)pthread_mutex_unlock(&watch->mutex);
    return ended;
}
