/* What the files of a watch share: watch_metrics.c and watch_line.c write texts of a snapshot, watch_server.c
 * serves them, watch_notify.c speaks to systemd, and watch.c has the thread. */
#ifndef SL_CLI_WATCH_WATCH_PRIVATE_H
#define SL_CLI_WATCH_WATCH_PRIVATE_H

#include "base/buffer.h"
#include "cli/watch/watch.h"

#include <pthread.h>

/* Of a text about 10,000 shards and 1,000 routes. */
#define SL_WATCH_TEXT_BYTES (16u * 1024 * 1024)

/* ---- watch.c: what is known from one snapshot to the next ---- */

struct sl_watch_state {
    bool has_one; /* a snapshot was taken */
    bool is_fresh;
    bool is_ending;
    bool has_lost_lease; /* within SL_WATCH_LOST_MS */
};

/* Takes the newest snapshot and looks at its age. Any thread. */
void sl_watch_look(struct sl_watch *watch, struct sl_arena *arena, struct sl_vitals *out,
                   struct sl_watch_state *state);

/* ---- watch_metrics.c ---- */

/* OpenMetrics 1.0, with its "# EOF". */
void sl_watch_metrics(const struct sl_vitals *v, bool is_per_shard, struct sl_buffer *out);

/* ---- watch_line.c ---- */

/* Records a second, between two snapshots. Zeroed at first. */
struct sl_watch_rate {
    uint64_t handled;
    int64_t at_ms;
    double per_second;
};

void sl_watch_rate_take(struct sl_watch_rate *rate, const struct sl_vitals *v);

/* One line without its end, at most `columns` wide. */
void sl_watch_line(const struct sl_vitals *v, const struct sl_watch_rate *rate, size_t columns,
                   struct sl_buffer *out);

/* One line of JSON with its end. */
void sl_watch_json(const struct sl_vitals *v, const struct sl_watch_rate *rate, struct sl_buffer *out);

/* ---- watch_server.c ---- */

struct sl_watch_server;

enum sl_status sl_watch_server_start(struct sl_watch *watch, const struct sl_watch_options *options,
                                     struct sl_watch_server **out, struct sl_error *error) SL_MUST_USE;
void sl_watch_server_stop(struct sl_watch_server *server); /* NULL is fine */
unsigned sl_watch_server_port(const struct sl_watch_server *server);

/* Whether a request with this Host header is answered. `name` is the host in `listen`. */
bool sl_watch_server_takes_host(const char *host, const char *name);

/* ---- watch_notify.c ---- */

struct sl_watch_notify {
    int fd;              /* -1: systemd did not start this process */
    int64_t watchdog_ms; /* between two notices; 0: none are wanted */
};

void sl_watch_notify_open(struct sl_watch_notify *notify, const struct sl_vars *vars);
void sl_watch_notify_close(struct sl_watch_notify *notify);
/* "READY=1\nSTATUS=..." */
void sl_watch_notify_say(const struct sl_watch_notify *notify, const char *text);

#endif
