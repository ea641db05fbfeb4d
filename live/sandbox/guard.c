/* Kills process groups in time, from a process of its own. */
#include "live/sandbox/guard.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 50
#define FIRE_MS 100 /* how long a kill that has begun is waited for: it takes microseconds */

enum { FREE, TAKEN, FIRING };

struct entry {
    atomic_int state;
    atomic_int pid;
    _Atomic int64_t until_ms;
};

struct sl_guard {
    int pid;               /* of the process that looks */
    struct entry *entries; /* shared with it: SL_GUARD_SANDBOXES */
};

#define SHARED_BYTES (SL_GUARD_SANDBOXES * sizeof(struct entry))

/* ---- the process that looks ---- */

static void fire(struct entry *entry)
{
    int expected = TAKEN;
    if (!atomic_compare_exchange_strong(&entry->state, &expected, FIRING))
        return;
    int pid = atomic_load(&entry->pid);
    if (pid > 0) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL); /* before it has a group of its own */
    }
    atomic_store(&entry->until_ms, INT64_MAX);
    atomic_store(&entry->state, TAKEN);
}

static _Noreturn void look(struct entry *entries, pid_t parent)
{
    struct sl_clock *clock = sl_clock_system();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sluice-guard");
    setpgid(0, 0); /* a signal for our group is not for it */
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    close_range(0, ~0u, 0);
    while (getppid() == parent) {
        int64_t now = clock->now_ms(clock);
        for (size_t i = 0; i < SL_GUARD_SANDBOXES; i++)
            if (atomic_load(&entries[i].state) == TAKEN && now >= atomic_load(&entries[i].until_ms))
                fire(&entries[i]);
        clock->sleep_ms(clock, LOOK_MS);
    }
    _exit(0);
}

/* ---- ours ---- */

enum sl_status sl_guard_start(struct sl_guard **out, struct sl_error *error)
{
    pid_t parent = getpid();
    struct entry *entries =
        mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *out = NULL;
    if (entries == MAP_FAILED)
        return sl_fail(error, SL_RETRY, "NoMemory", "no memory for the guard of sandboxes: %s",
                       strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        look(entries, parent);
    if (pid < 0) {
        munmap(entries, SHARED_BYTES);
        return sl_fail(error, SL_RETRY, "NoProcess", "no process for the guard of sandboxes: %s",
                       strerror(errno));
    }
    struct sl_guard *guard = malloc(sizeof(*guard));
    if (!guard)
        sl_die("out of memory: the guard of sandboxes");
    *guard = (struct sl_guard){pid, entries};
    *out = guard;
    return SL_OK;
}

void sl_guard_end(struct sl_guard *guard)
{
    if (!guard)
        return;
    kill(guard->pid, SIGKILL);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    munmap(guard->entries, SHARED_BYTES);
    free(guard);
}

static struct entry *find(struct sl_guard *guard, int pid)
{
    for (size_t i = 0; i < SL_GUARD_SANDBOXES; i++)
        if (atomic_load(&guard->entries[i].state) != FREE && atomic_load(&guard->entries[i].pid) == pid)
            return &guard->entries[i];
    return NULL;
}

static struct entry *take(struct sl_guard *guard, int pid)
{
    for (size_t i = 0; i < SL_GUARD_SANDBOXES; i++) {
        struct entry *entry = &guard->entries[i];
        int expected = FREE;
        /* As FIRING it is nobody's until it has its number. */
        if (!atomic_compare_exchange_strong(&entry->state, &expected, FIRING))
            continue;
        atomic_store(&entry->pid, pid);
        atomic_store(&entry->until_ms, INT64_MAX);
        atomic_store(&entry->state, TAKEN);
        return entry;
    }
    return NULL;
}

bool sl_guard_watch(struct sl_guard *guard, int pid, int64_t until_ms)
{
    struct entry *entry = find(guard, pid);
    if (!entry && until_ms != INT64_MAX)
        entry = take(guard, pid);
    if (entry)
        atomic_store(&entry->until_ms, until_ms);
    return entry || until_ms == INT64_MAX;
}

void sl_guard_forget(struct sl_guard *guard, int pid)
{
    struct sl_clock *clock = sl_clock_system();
    struct entry *entry = find(guard, pid);
    for (int waited = 0; entry; waited++) {
        int expected = TAKEN;
        if (waited == FIRE_MS) { /* whoever fires was killed itself */
            atomic_store(&entry->state, FREE);
            return;
        }
        if (atomic_compare_exchange_strong(&entry->state, &expected, FREE))
            return;
        clock->sleep_ms(clock, 1);
    }
}
