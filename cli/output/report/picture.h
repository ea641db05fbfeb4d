/* `--report`: a replay as one HTML page, which needs no other file and no network.
 *
 * The page says which run it is, lists the records that were given up or parked, and draws the invocations of
 * each shard: one line each, in the order in which they were decided, from top to bottom; the shard's records
 * run from left to right. page.js does the drawing in the browser; all text works without it. */
#ifndef SL_CLI_OUTPUT_REPORT_PICTURE_H
#define SL_CLI_OUTPUT_REPORT_PICTURE_H

#include "cli/output/summary.h"
#include "live/sandbox/notes.h"

struct sl_picture;

/* The settings are borrowed until sl_picture_destroy, and so are the records of all calls. */
struct sl_picture *sl_picture_new(const struct sl_esm_settings *settings);
void sl_picture_destroy(struct sl_picture *picture); /* NULL is fine */

/* Adds an invocation, after what it gave up. `notes` has what our bootstrap said of it. */
void sl_picture_add(struct sl_picture *picture, const struct sl_esm_invocation *inv,
                    const struct sl_esm_result *result, const struct sl_esm_decision *decision,
                    const struct sl_notes *notes);
void sl_picture_add_discard(struct sl_picture *picture, const struct sl_esm_discard *discard);

/* Which run it is. All borrowed for the call. */
struct sl_picture_run {
    const char *verb;
    const char *config;  /* of our bootstrap */
    const char *command; /* another runtime; NULL: our bootstrap */
    const char *const *inputs, *const *filters, *const *faults;
    size_t n_inputs, n_filters, n_faults;
    int64_t timeout_s, seed;
    bool is_live;
    int64_t wall_ms; /* when the run ended, since 1970 */
};

/* Whether the file can be written; else errno says why. Asked before the replay begins. */
bool sl_picture_can_write(const char *path);

/* Writes another file, and renames it to `path`. */
enum sl_status sl_picture_write(const struct sl_picture *picture, const char *path,
                                const struct sl_picture_run *run, const struct sl_run_summary *summary,
                                struct sl_error *error) SL_MUST_USE;

#endif
