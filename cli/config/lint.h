/* What `sluice check` finds: one table of findings, each with a code that stays; and the findings about
 * filter patterns that AWS accepts. */
#ifndef SL_CLI_CONFIG_LINT_H
#define SL_CLI_CONFIG_LINT_H

#include "base/types.h"

enum sl_lint_finding {
    /* the configuration */
    SL_FINDING_VARIABLE_NOT_SET,
    SL_FINDING_SET_UNUSED,
    SL_FINDING_TARGET_LOCAL,
    SL_FINDING_TRACE_UNUSED,
    SL_FINDING_BATCH_FAILS_WHOLE,
    SL_FINDING_COUNTER_MOVES,
    SL_FINDING_VIEW_LACKS_IMAGE,
    SL_FINDING_WEBHOOK_IDS_SHARED,
    SL_FINDING_OPTION_UNUSED,
    SL_FINDING_TEMPLATE_BRACES,
    SL_FINDING_TEMPLATE_TYPE,
    /* several routes */
    SL_FINDING_TABLE_SHARED,
    SL_FINDING_OBJECTS_SHARED,
    SL_FINDING_FAILURES_MIXED,
    SL_FINDING_SOURCE_IS_TARGET,
    /* a sample, with --sample */
    SL_FINDING_SAMPLE_NOT_TAKEN,
    SL_FINDING_SAMPLE_NOT_FILLED,
    /* patterns */
    SL_FINDING_NEVER_MATCHES,
    SL_FINDING_ALWAYS_MATCHES,
    SL_FINDING_ABSENCE_IN_LIST,
    SL_FINDING_CASE_OF_EMOJI,
    SL_FINDING_OPERATOR_UNPUBLISHED,
    SL_FINDING_FILTER_REFUSED,
    SL_FINDING_FILTER_TOO_LONG,
    SL_FINDING_FILTERS_TOO_MANY,
    /* the mapping */
    SL_FINDING_FAILURES_IGNORED,
    SL_FINDING_FAILURES_UNUSED,
    SL_FINDING_NO_DESTINATION,
    SL_FINDING_AGE_SHORT,
    SL_FINDING_RETRIES_FEW,
    SL_FINDING_SHARD_BLOCKED,
    SL_FINDING_BISECT_OFF,
    SL_FINDING_STARTS_LATEST,
    SL_FINDING_WINDOW_PARALLEL,
    SL_FINDING_RETRIES_UNLIMITED,
    SL_FINDING_MAPPING_REFUSED,
    SL_FINDING_MAPPING_MISTYPED,
    SL_FINDING_MAPPING_DISABLED,
    SL_FINDING_ORDER_TIED,
    SL_FINDING_TOTALS_TIED,
    /* tables, with --tables */
    SL_FINDING_TABLE_MISSING,
    SL_FINDING_KEY_DIFFERS,
    SL_FINDING_SET_ON_KEY,
    SL_FINDING_KEY_NOT_UNIQUE,
    SL_FINDING_ORDER_NEEDED,
    /* totals */
    SL_FINDING_LEDGER_SHARED,
    SL_FINDING_KEY_BARE,
    SL_FINDING_SHARDS_READ,
    SL_FINDING_SHARDS_CHANGED,
    SL_FINDING_EPOCH_BEHIND,
    SL_FINDING_EPOCH_RAISED,
    SL_FINDING_ASIDE_KINESIS,
    SL_FINDING_QUEUE_MISSING,
    SL_FINDING_LETTERS_EXPIRE,
    SL_FINDINGS
};

/* The table. docs/CHECK.md has a line for each row. */
struct sl_lint_row {
    const char *code; /* never changes: people filter by it */
    bool loses;       /* records can get lost because of it: a warning, else a note */
};

extern const struct sl_lint_row sl_lint_rows[SL_FINDINGS];

/* Called once for each finding. */
typedef void (*sl_lint_fn)(void *arg, enum sl_lint_finding finding, const char *text);

/* Finds what in a route's pattern asks something else than it seems to: `exists` beside a type or below a
 * list, `equals-ignore-case` of an emoji. (What can never match is refused by the route itself.) Each finding
 * begins with `where`. */
void sl_lint_pattern(struct sl_span json, const char *where, sl_lint_fn found, void *arg);

/* The same for a filter of the mapping, and what can never match, unless AWS refuses it: then that is the
 * finding. It also names operators that Lambda does not publish, which loses nothing. */
void sl_lint_filter(struct sl_span json, const char *where, sl_lint_fn found, void *arg);

#endif
