/* The pace of a backfill: pieces that fit the budget of write units, and fewer and smaller ones while a
 * target refuses them. */
#include "work/backfill/backfill_private.h"

#define LEAST_BYTES ((size_t)16 * 1024)

/* After failures: 0.2 s, 0.4 s, ... 30 s, each with as much chance as not. */
#define FIRST_MS 200
#define LAST_MS  30000

/* So much of an unused budget is kept, in seconds: a piece is made at once, and then paid off. */
#define BURST_S 1.0

static int64_t now_ms(const struct sl_backfill *b)
{
    return b->options.clock->now_ms(b->options.clock);
}

void sl_backfill_pace_init(struct sl_backfill *b)
{
    if (!b->options.piece_bytes)
        b->options.piece_bytes = SL_BACKFILL_PIECE_BYTES;
    b->piece_bytes = b->options.piece_bytes;
    b->budget_ms = now_ms(b);
    /* What a byte costs is not known yet: an item of 100 bytes may be two units. */
    if (b->options.write_units > 0)
        b->units_per_byte = 0.02;
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

/* The next piece is what a second's budget pays for. */
static size_t affordable(const struct sl_backfill *b)
{
    double bytes = b->options.write_units / b->units_per_byte;
    return bytes < (double)b->options.piece_bytes ? (size_t)bytes : b->options.piece_bytes;
}

void sl_backfill_pace_done(struct sl_backfill *b, double used)
{
    size_t most = b->options.piece_bytes, bytes = b->piece.batch.payload.len;
    b->failures = 0;
    b->budget -= used;
    if (b->options.write_units > 0 && used > 0 && bytes > 0)
        b->units_per_byte = (b->units_per_byte + used / (double)bytes) / 2;
    if (b->options.write_units > 0)
        most = affordable(b);
    b->piece_bytes = 2 * b->piece_bytes < most ? 2 * b->piece_bytes : most;
    b->piece_bytes = b->piece_bytes < LEAST_BYTES ? LEAST_BYTES : b->piece_bytes;
}

int64_t sl_backfill_pace_failed(struct sl_backfill *b)
{
    int64_t most = FIRST_MS << (b->failures < 8 ? b->failures : 8);
    most = most > LAST_MS ? LAST_MS : most;
    b->failures++;
    b->piece_bytes = b->piece_bytes / 2 > LEAST_BYTES ? b->piece_bytes / 2 : LEAST_BYTES;
    return most / 2 + (int64_t)(b->options.clock->random(b->options.clock) % (uint64_t)(most / 2 + 1));
}
