/* Kept connections whose peer may be gone: after a sandbox was frozen and thawed, or behind a gateway that
 * forgot them, nothing answers, and nothing says so.
 *
 * A connection that is idle gets the socket option TCP_USER_TIMEOUT: when the first bytes of its next
 * request stay unacknowledged for SL_IDLE_DEAD_MS, the kernel ends it, and libcurl sends again on another.
 * Once the peer has acknowledged a byte of that request, the option is taken away, because it also counts the
 * time in which a peer that lives does not read (a zero window).
 *
 * Which connections are idle is not told by request, which would be a system call for each: a look at all of
 * them once in SL_IDLE_CHECK_MS finds those on which nothing is to be acknowledged and nothing was since the
 * look before, and after a pause all are. */
#ifndef SL_NET_IDLE_H
#define SL_NET_IDLE_H

#include "base/types.h"

#define SL_IDLE_DEAD_MS  5000
#define SL_IDLE_CHECK_MS 1000 /* often enough to take the option away in time */
#define SL_IDLE_PAUSE_MS 100  /* no request for so long: a sandbox may have been frozen */

/* One socket: its number, and how many bytes its peer had acknowledged at the last look, or when the option
 * was set. */
struct sl_idle_socket {
    int fd;
    bool is_armed;
    uint64_t acked;
};

struct sl_idle {
    struct sl_idle_socket *sockets;
    size_t n, room;
    int64_t checked_ms;
};

/* Zeroed memory is empty. */
void sl_idle_clean_up(struct sl_idle *idle);

/* A new socket. */
void sl_idle_add(struct sl_idle *idle, int fd);

/* Before the socket is closed: its number will mean another. */
void sl_idle_forget(struct sl_idle *idle, int fd);

/* Sets the option where nothing moves, and takes it away where the peer lives. `now_ms` is real time; looks
 * once in SL_IDLE_CHECK_MS. Where the kernel does not count acknowledged bytes, nothing is done. */
void sl_idle_check(struct sl_idle *idle, int64_t now_ms);

/* No request is under way. */
void sl_idle_rest(struct sl_idle *idle);

#endif
