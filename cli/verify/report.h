/* What a verification tells: findings, progress, the result, and when each route was last proven. */
#ifndef SL_CLI_VERIFY_REPORT_H
#define SL_CLI_VERIFY_REPORT_H

#include "base/log.h"
#include "data/verify/archive/chain.h"
#include "data/verify/totals.h"
#include "data/verify/verify.h"

/* Findings that are printed without --json. */
#define SL_REPORT_LINES 50

struct sl_report {
    const char *verb; /* of the command, which lines on standard error begin with */
    bool is_json, is_quiet;
    uint64_t printed, left;
    int64_t began_ms, told_ms;
    uint64_t told_items;
    struct sl_totals_counts totals; /* set by who verifies them */
    struct sl_chain_counts archives;
};

/* With --json the line goes to standard output; else the first ones go there in words. */
void sl_report_found(struct sl_report *r, const struct sl_finding *finding, struct sl_span line);

/* The same for a finding that is a line alone, of the totals or an archive. */
void sl_report_line(struct sl_report *r, struct sl_span line);

/* Letters of the route wait (-1: nobody knows how many, or `why` it could not be asked). */
void sl_report_letters(struct sl_report *r, const char *route, int64_t letters, const char *why);

/* A line on standard error, every few seconds. */
void sl_report_progress(struct sl_report *r, const struct sl_verify *work, int64_t now_ms);

/* The result: a line for each route, and one for all. */
void sl_report_end(struct sl_report *r, const struct sl_verify *work);

/* Keeps in the file when each route was last proven: {"NAME":"2026-11-20T21:04:00.000Z"}. A route is proven
 * when it `covers` the whole table, nothing differs and nothing is unproven. Then prints the metric
 * SecondsSinceVerified of each route that the file knows. */
enum sl_status sl_report_verified(const char *path, const struct sl_verify *work, bool covers,
                                  struct sl_log *log, struct sl_error *error) SL_MUST_USE;

#endif
