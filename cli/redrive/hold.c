/* Keeps receipts in a file, and goes through it. */
#include "cli/redrive/hold.h"

#include "base/error.h"
#include "base/span.h"
#include "live/source/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS  30000
#define TOGETHER    160 /* receipts of one call: sixteen requests */
#define PUNCH_BYTES ((uint64_t)4 * 1024 * 1024)
/* After so long nothing more is received: what is held has to be let go of before SQS does it. */
#define OLD_MS ((int64_t)(SL_INBOX_HIDDEN_MAX_S - 1800) * 1000)

/* What is in the file, followed by the receipt and a NUL. */
struct entry {
    int64_t received_ms; /* steady */
    uint32_t bytes;      /* of the receipt and the NUL */
    uint32_t is_gone;    /* removed, or no longer ours */
};

struct sl_hold {
    struct sl_inbox *inbox;
    struct sl_clock *clock;
    int64_t hidden_ms, kept_ms;
    struct sl_arena *arena; /* the spool's */
    struct sl_spool *spool;
    uint64_t first;   /* no entry before it is ours */
    uint64_t punched; /* and so much of it is given back to the file system */
    int64_t oldest_ms;
    size_t n;
};

struct sl_hold *sl_hold_new(struct sl_inbox *inbox, struct sl_clock *clock, int64_t hidden_s)
{
    struct sl_hold *hold = calloc(1, sizeof(*hold));
    if (!hold)
        sl_die("out of memory: receipts");
    *hold = (struct sl_hold){.inbox = inbox,
                             .clock = clock,
                             .hidden_ms = hidden_s * 1000,
                             .kept_ms = clock->now_ms(clock),
                             .arena = sl_arena_new(4096)};
    hold->spool = sl_spool_new(hold->arena);
    return hold;
}

void sl_hold_destroy(struct sl_hold *hold)
{
    if (!hold)
        return;
    sl_arena_destroy(hold->arena);
    free(hold);
}

size_t sl_hold_count(const struct sl_hold *hold)
{
    return hold->n;
}

/* ---- the file ---- */

enum sl_status sl_hold_add(struct sl_hold *hold, const char *receipt, uint64_t *place, struct sl_error *error)
{
    const struct entry entry = {.received_ms = hold->clock->now_ms(hold->clock),
                                .bytes = (uint32_t)strlen(receipt) + 1};
    int fd;
    *place = sl_spool_bytes(hold->spool);
    sl_spool_add(hold->spool, sl_span((const char *)&entry, sizeof(entry)));
    sl_spool_add(hold->spool, sl_span(receipt, entry.bytes));
    if (hold->n++ == 0) {
        hold->first = *place;
        hold->oldest_ms = entry.received_ms;
    }
    return sl_spool_file(hold->spool, &fd, error);
}

static int file_of(struct sl_hold *hold)
{
    struct sl_error ignored = SL_NO_ERROR; /* sl_hold_add has told it */
    int fd = -1;
    return sl_spool_file(hold->spool, &fd, &ignored) == SL_OK ? fd : -1;
}

/* A file system that cannot do it keeps the whole file. */
static void punch(struct sl_hold *hold)
{
    if (hold->first - hold->punched < PUNCH_BYTES)
        return;
    (void)fallocate(file_of(hold), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)hold->punched,
                    (off_t)(hold->first - hold->punched));
    hold->punched = hold->first;
}

static void forget(struct sl_hold *hold, uint64_t place)
{
    const uint32_t gone = 1;
    ssize_t n = pwrite(file_of(hold), &gone, sizeof(gone), (off_t)(place + offsetof(struct entry, is_gone)));
    hold->n -= n == (ssize_t)sizeof(gone);
}

void sl_hold_drop(struct sl_hold *hold, uint64_t place)
{
    forget(hold, place);
    if (hold->n)
        return;
    hold->first = sl_spool_bytes(hold->spool);
    punch(hold);
}

/* ---- going through it ---- */

struct some {
    const char *receipts[TOGETHER];
    int64_t seconds[TOGETHER];
    uint64_t places[TOGETHER];
    size_t n;
};

static bool read_at(struct sl_hold *hold, uint64_t at, void *out, size_t n)
{
    return pread(file_of(hold), out, n, (off_t)at) == (ssize_t)n;
}

/* The next ones that are ours, from `*at` on. `hidden_s`: for how long they are to be hidden now. */
static bool gather(struct sl_hold *hold, uint64_t *at, int64_t hidden_s, struct sl_arena *arena,
                   struct some *out)
{
    int64_t now_ms = hold->clock->now_ms(hold->clock);
    struct entry entry;
    out->n = 0;
    while (out->n < TOGETHER && *at < sl_spool_bytes(hold->spool) &&
           read_at(hold, *at, &entry, sizeof(entry))) {
        uint64_t place = *at;
        *at += sizeof(entry) + entry.bytes;
        if (entry.is_gone)
            continue;
        /* SQS refuses to hide it for longer than twelve hours in all. */
        int64_t left_s = SL_INBOX_HIDDEN_MAX_S - (now_ms - entry.received_ms) / 1000 - 5;
        char *receipt = sl_arena_alloc(arena, entry.bytes);
        if ((hidden_s && left_s <= 0) || !read_at(hold, place + sizeof(entry), receipt, entry.bytes))
            continue;
        out->receipts[out->n] = receipt;
        out->places[out->n] = place;
        out->seconds[out->n++] = hidden_s < left_s ? hidden_s : left_s > 0 ? left_s : 0;
    }
    return out->n > 0;
}

/* Nothing before the first entry of ours is looked at again. */
static void skip_gone(struct sl_hold *hold)
{
    struct entry entry;
    while (hold->first < sl_spool_bytes(hold->spool) && read_at(hold, hold->first, &entry, sizeof(entry)) &&
           entry.is_gone)
        hold->first += sizeof(entry) + entry.bytes;
    if (hold->n && read_at(hold, hold->first, &entry, sizeof(entry)))
        hold->oldest_ms = entry.received_ms;
    punch(hold);
}

/* Hides all that are ours. A message whose receipt SQS no longer takes is not ours any more. Returns how many
 * are as they are to be, or not ours. */
static size_t hide_all(struct sl_hold *hold, int64_t hidden_s)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct some some;
    struct sl_result results[TOGETHER];
    size_t n_settled = 0;
    skip_gone(hold);
    for (uint64_t at = hold->first; gather(hold, &at, hidden_s, arena, &some); sl_arena_reset(arena)) {
        const struct sl_call call = {arena, hold->clock->now_ms(hold->clock) + TIMEOUT_MS};
        sl_inbox_hide(hold->inbox, some.receipts, some.seconds, some.n, results, &call);
        for (size_t i = 0; i < some.n; i++) {
            n_settled += results[i].status == SL_OK || results[i].status == SL_REJECT;
            if (results[i].status == SL_REJECT)
                forget(hold, some.places[i]);
        }
    }
    sl_arena_destroy(arena);
    return n_settled;
}

void sl_hold_keep(struct sl_hold *hold)
{
    int64_t now_ms = hold->clock->now_ms(hold->clock);
    if (now_ms - hold->kept_ms < hold->hidden_ms / 3)
        return;
    hold->kept_ms = now_ms;
    if (hold->n)
        (void)hide_all(hold, hold->hidden_ms / 1000); /* what failed is tried again in a third of the time */
}

bool sl_hold_is_old(const struct sl_hold *hold)
{
    return hold->n && hold->clock->now_ms(hold->clock) - hold->oldest_ms > OLD_MS;
}

size_t sl_hold_release(struct sl_hold *hold)
{
    size_t n = hold->n;
    return n ? n - hide_all(hold, 0) : 0;
}
