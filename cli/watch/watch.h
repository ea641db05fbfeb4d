/* A running tail, watched: lines for people and logs, metrics and health for monitors, and systemd's notices.
 *
 * All of it reads the engine's newest snapshot (live/tail/vitals.h) in threads of its own and never waits
 * for the engine, nor the engine for it. Items' keys and values are in no snapshot, so they are in nothing
 * here.
 *
 * - Lines go to `fd`: one live line a second on a terminal, else one line of JSON a minute.
 * - `listen` serves HTTP: /metrics (OpenMetrics 1.0), /health and /ready. GET and HEAD alone, and the Host
 *   header must be an address, localhost, or the name in `listen`: a page in a browser that makes a name of
 *   its own lead here gets nothing.
 * - systemd (Type=notify): READY=1 with the first snapshot, WATCHDOG=1 as long as snapshots come, STATUS=,
 *   STOPPING=1. */
#ifndef SL_CLI_WATCH_WATCH_H
#define SL_CLI_WATCH_WATCH_H

#include "base/error.h"
#include "base/vars.h"
#include "live/tail/vitals.h"

/* The engine publishes four times a second. After so long without a new snapshot it has stopped: /health
 * fails, and systemd hears nothing more. */
#define SL_WATCH_STALE_MS 30000
/* So long after a lease was lost, /ready fails. */
#define SL_WATCH_LOST_MS 60000
/* Of more open shards, single ones are in /metrics only when asked for. */
#define SL_WATCH_SHARDS 64

struct sl_watch_options {
    struct sl_vitals_board *board; /* borrowed until sl_watch_stop */
    const struct sl_vars *vars;    /* NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID; read at the start alone */
    const char *listen;            /* "127.0.0.1:9464", "[::1]:9464", "name:9464"; NULL: no server */
    bool is_per_shard;             /* single shards in /metrics, however many */
    bool is_quiet;                 /* no lines */
    int fd;
};

struct sl_watch;

/* SL_REJECT: `listen` is wrong, or its port is taken. */
enum sl_status sl_watch_start(const struct sl_watch_options *options, struct sl_watch **out,
                              struct sl_error *error) SL_MUST_USE;

/* The terminal's line is wiped. NULL is fine. */
void sl_watch_stop(struct sl_watch *watch);

/* Of the server: the port that 0 became. */
unsigned sl_watch_port(const struct sl_watch *watch);

#endif
