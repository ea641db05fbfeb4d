/* What the built-in handlers tell of themselves beside struct sl_handler. Plugins have no part in it, and it
 * may change with every release. Who has to know something about a handler asks here (handlers/pipeline/
 * builtins.h), and never by its name. */
#ifndef SL_HANDLERS_BUILTIN_H
#define SL_HANDLERS_BUILTIN_H

#include "handlers/handler.h"

/* What a route leaves in its target. */
enum sl_makes {
    SL_MAKES_UNKNOWN = 0, /* a plugin's */
    SL_MAKES_OBJECTS,     /* an archive: `verify --archives` reads it */
    SL_MAKES_ROWS,        /* a row for each item, with a guard of its own */
    SL_MAKES_VIEW,        /* rows that each belong to one item, and lists of them */
    SL_MAKES_TOTALS,      /* rows of which each adds up many items; read_totals says how */
    SL_MAKES_MESSAGES
};

/* Of a route that makes totals. The texts live as long as the route, the lists in the call's arena. */
struct sl_totals_facts {
    bool has_ledger;    /* of what each item counts for */
    bool is_exact;      /* with a ledger: the totals follow from it */
    bool counts_events; /* changes count, not items */
    int64_t shards, epoch;
    struct sl_span ledger;                  /* its name: rows have keys "sluice:ledger:NAME:..." */
    struct sl_span ledger_table;            /* absent: beside the totals */
    struct sl_span ledger_keys[2], keys[2]; /* key attributes: of the ledger's rows; of the totals', as the
                                               configuration orders them */
    size_t n_ledger_keys, n_keys;
    const struct sl_span *sums, *running; /* attributes: that items add to; that only grow or only fall */
    size_t n_sums, n_running;
};

/* What the target of messages can do with them. */
enum {
    SL_TO_SQS = 1,
    SL_TO_SNS = 2,
    SL_TO_FIFO = 4, /* of SQS or SNS */
    SL_TO_EVENTS = 8,
    SL_TO_KINESIS = 16,
    SL_TO_FIREHOSE = 32,
    SL_TO_WEBHOOK = 64,
    SL_TO_LINES = 128
};

/* The option has an effect if the target is one of `targets` (0: any), and if `other` is (or is not) `value`.
 * A value of NULL: if `other` is given. */
struct sl_option_use {
    const char *option; /* NULL: the list's end */
    unsigned targets;
    const char *other, *value;
    bool is_not;
    const char *why; /* it has none otherwise */
};

struct sl_builtin {
    const struct sl_handler *handler; /* NULL: a plugin */
    enum sl_makes makes;
    const struct sl_option_use *uses; /* NULL: each option has an effect by itself */
    void (*read_totals)(const void *self, struct sl_arena *arena, struct sl_totals_facts *out);
    /* Where templates see more than the record: does the record fill this one? NULL: they see the record. */
    bool (*fills)(const void *self, const struct sl_record *r, const struct sl_template *t,
                  struct sl_arena *arena);
};

extern const struct sl_option_use archive_uses[], replicate_uses[], aggregate_uses[], notify_uses[];

/* `self`: an open view. */
bool view_fills(const void *self, const struct sl_record *r, const struct sl_template *t,
                struct sl_arena *arena);

/* `self`: an open aggregate. */
void aggregate_read_totals(const void *self, struct sl_arena *arena, struct sl_totals_facts *out);

#endif
