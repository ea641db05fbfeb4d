/* How many requests of one target are on the wire at once: as many as the target takes.
 *
 * A limit begins at SL_PACE_BEGIN and doubles with each good round (as many answers as the limit is, while
 * more work waited than it let through), up to its cap. When the target says that it is too much, to more
 * than about a fifteenth of the latest requests, the limit is halved, at most once for the requests that were
 * on the wire together. From then on it doubles only up to the half, and by one a round beyond it; and below
 * the limit that was refused it stays for several rounds. So it stays near what the target takes. After
 * SL_PACE_IDLE_MS without a request the connections are gone, and it begins anew.
 *
 * Over TLS the first request goes alone, until it is over or SL_PACE_ALONE_MS have passed: with its answer
 * comes the session that the other connections resume, which saves each of them most of a handshake.
 *
 * It lies between 1 and the cap, always; with nothing on the wire there is always room for one request. The
 * bytes on the wire are bounded too, in both directions: what is sent by its size, what is received by the
 * largest of the answers that came lately. Each target has one of its own, and targets are used one after the
 * other, so that SL_PACE_MAX is also the most that a process has on the wire. */
#ifndef SL_NET_PACE_H
#define SL_NET_PACE_H

#include "base/types.h"

#define SL_PACE_BEGIN    8
#define SL_PACE_MAX      64
#define SL_PACE_ALONE_MS 500
#define SL_PACE_IDLE_MS  50000 /* AWS closes idle connections after 20 to 60 s */
/* Of bodies on the wire, and of answers, in a function of 128 MB; a larger one goes alone. */
#define SL_PACE_BYTES (32u * 1024 * 1024)

struct sl_pace {
    size_t cap, limit, peak;
    size_t half;          /* up to here it doubles */
    size_t refused;       /* the limit when it was halved last; 0: it never was */
    size_t good;          /* answers of this round */
    size_t refused_share; /* of the latest answers; what net/pace.c makes of it */
    size_t answer_bytes;  /* of the largest answers lately */
    uint64_t begun;       /* requests begun so far */
    uint64_t cut_at;      /* `begun` when the limit was halved last: earlier requests do not halve it again */
    int64_t used_ms;
    bool is_alone; /* a request over TLS is the first; its owner sets it at the start */
};

/* `cap` is 1 to SL_PACE_MAX. */
void sl_pace_init(struct sl_pace *pace, size_t cap);

/* Whether one more request with a body of `bytes` may be begun beside `flying` others, whose bodies have
 * `flying_bytes`. */
bool sl_pace_has_room(const struct sl_pace *pace, size_t flying, size_t flying_bytes, size_t bytes);

/* To be called before: the first request over TLS is over, or it is too late to wait for it. */
void sl_pace_look(struct sl_pace *pace, size_t flying, int64_t now_ms);

/* A request is begun at `now_ms` of a steady clock. Returns its number, for the three below. */
uint64_t sl_pace_begin(struct sl_pace *pace, int64_t now_ms);

/* Its answer came, with a body of `bytes`. `is_full`: more work waited than the limit let through; else the
 * answer says nothing about a greater one. */
void sl_pace_took(struct sl_pace *pace, size_t bytes, bool is_full);

/* Request `number` was refused because there are too many. */
void sl_pace_throttled(struct sl_pace *pace, uint64_t number);

#endif
