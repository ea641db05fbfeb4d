/* Inside the replicate handler: our attributes on items, and the signature among them. */
#ifndef SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_SIGN_H
#define SL_HANDLERS_BUILTIN_REPLICATE_REPLICATE_SIGN_H

#include "handlers/builtin/replicate/replicate_private.h"

/* Our attributes as an image carries them, SL_NONE where it does not. */
struct replicate_stamp {
    struct sl_value guard, write, deleted, expires;
    size_t n_members; /* of the image */
};

struct replicate_stamp replicate_stamp_of(const struct replicate *p, struct sl_value image,
                                          struct sl_arena *arena);

/* Is it a guard as a replicate writes it? */
bool replicate_stamp_has_guard(const struct replicate_stamp *stamp);

enum replicate_signature {
    REPLICATE_UNSIGNED, /* none that belongs to this guard: an earlier release wrote the item */
    REPLICATE_EDITED,   /* the guard's, but of another item: a copy, or changed since */
    REPLICATE_SIGNED    /* the item is as a replicate wrote it */
};

/* "1:", 16 digits of the guard's digest, ":", 32 digits of the item's; then, for a revived item, ":", the
 * tombstone's guard, ":", and when the tombstone would have expired.
 *
 * The item's digest is SHA-256 over the whole item but for the signature, so over key and order too, by
 * value: the service may write it in another way. The guard's tells a signature that belongs to this guard
 * from one that the last release copied from another item with the application's attributes. */
#define REPLICATE_SIGNATURE_BYTES (2 + 16 + 1 + 32)
#define REPLICATE_REVIVED_BYTES   (1 + REPLICATE_GUARD_BYTES + 1 + 20)

/* Writes the signature of the item, which has its guard, at `at`, and returns where it ends. */
char *replicate_sign(const struct replicate *p, const struct replicate_change *change, struct sl_span item,
                     char *at);

enum replicate_signature replicate_sign_check(const struct replicate *p, struct sl_value image,
                                              const struct replicate_stamp *stamp, struct sl_arena *arena);

/* What the signature asks back for; nothing unless it has REPLICATE_SIGNED. */
struct replicate_revival replicate_sign_revival(const struct replicate_stamp *stamp);

/* Is the image, of a record of this key, a tombstone as a replicate wrote it? */
bool replicate_is_tombstone(const struct replicate *p, struct sl_value image, struct sl_value keys,
                            struct sl_arena *arena);

/* Does the row of that key stand for no item: is it not there, or a tombstone of ours? */
bool replicate_is_absent(const struct replicate *p, struct sl_value row, struct sl_span key,
                         struct sl_arena *arena);

/* Is it a tombstone on which somebody wrote? */
struct replicate_revival replicate_revival_of(const struct replicate *p,
                                              const struct replicate_change *change, struct sl_arena *arena);

/* ---- replicate_echo.c ---- */

enum replicate_origin {
    REPLICATE_USER,
    REPLICATE_ECHO,          /* a replicate made the change */
    REPLICATE_ECHO_UNSIGNED, /* so it seems: it has a new guard, and no signature */
    REPLICATE_HELD           /* no change, but an item with a guard: its stream says who made it */
};

/* Who made the change? SL_FATAL when the stream's view type cannot tell. `may_carry` is false when the
 * record's image certainly carries no attributes of ours. */
enum sl_status replicate_origin(const struct replicate *p, const struct sl_record *r, struct sl_arena *arena,
                                enum replicate_origin *origin, bool *may_carry,
                                struct sl_error *error) SL_MUST_USE;

#endif
