/* The pace of a backfill: pieces that fit the budget of write units, and fewer and smaller ones while a
 * target refuses them. */
#include "work/backfill/backfill_private.h"

#define LEAST_BYTES ((size_t)16 * 1024)

/* After failures: 0.2 s, 0.4 s, ... 30 s, half of each by chance. */
#define FIRST_MS 200
#define LAST_MS  30000

/* So much of an unused budget is kept, in seconds: a piece is made at once, and then paid off. */
#define BURST_S 1.0

static int64_t now_ms(const struct sl_backfill *b)
{
    return b->options.clock->now_ms(b->options.clock);
}

/* A piece is what a second's budget pays for. */
static size_t most_bytes(const struct sl_backfill *b)
{
    double bytes = b->options.write_units / b->units_per_byte;
    bool is_bound = b->options.write_units > 0 && bytes < (double)b->options.piece_bytes;
    return is_bound ? (size_t)bytes + 1 : b->options.piece_bytes;
}

void sl_backfill_pace_init(struct sl_backfill *b)
{
    if (!b->options.piece_bytes)
        b->options.piece_bytes = SL_BACKFILL_PIECE_BYTES;
    b->budget_ms = now_ms(b);
    b->units_per_byte = 0.02; /* not known yet: an item of 100 bytes may be two units */
    b->piece_bytes = most_bytes(b);
}

int64_t sl_backfill_pace_wait(struct sl_backfill *b)
{
    double rate = b->options.write_units;
    if (rate <= 0)
        return 0;
    int64_t now = now_ms(b);
    b->budget += rate * (double)(now - b->budget_ms) / 1000;
    b->budget = b->budget > rate * BURST_S ? rate * BURST_S : b->budget;
    b->budget_ms = now;
    return b->budget >= 0 ? 0 : (int64_t)(-b->budget / rate * 1000) + 1;
}

void sl_backfill_pace_done(struct sl_backfill *b, double used)
{
    size_t bytes = b->piece.batch.payload.len;
    b->failures = 0;
    b->budget -= used;
    if (used > 0 && bytes > 0)
        b->units_per_byte = (b->units_per_byte + used / (double)bytes) / 2;
    size_t most = most_bytes(b);
    b->piece_bytes = 2 * b->piece_bytes < most ? 2 * b->piece_bytes : most;
}

int64_t sl_backfill_pace_failed(struct sl_backfill *b)
{
    int64_t most_ms = FIRST_MS << (b->failures < 8 ? b->failures : 8);
    most_ms = most_ms > LAST_MS ? LAST_MS : most_ms;
    b->failures++;
    if (b->piece_bytes > 2 * LEAST_BYTES)
        b->piece_bytes /= 2;
    return most_ms / 2 + (int64_t)(b->options.clock->random(b->options.clock) % (uint64_t)(most_ms / 2 + 1));
}
