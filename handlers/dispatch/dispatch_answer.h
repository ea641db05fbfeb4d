/* The answer to one batch. dispatch.h makes it. */
#ifndef SL_HANDLERS_DISPATCH_DISPATCH_ANSWER_H
#define SL_HANDLERS_DISPATCH_DISPATCH_ANSWER_H

#include "base/buffer.h"

/* The answer allows 6 MB (Lambda's synchronous limit). */
#define SL_ANSWER_BYTES (6 * 1024 * 1024)

/* More parked records of one batch are counted, not noted. */
#define SL_ANSWER_NOTES 1000

/* What became of one record, and why: for whoever reads SLUICE_REPORT_FD. */
struct sl_answer_note {
    bool is_parked; /* durably; else it failed: its index is k */
    const char *route, *code, *text;
    struct sl_span id; /* what an answer names */
};

struct sl_answer {
    bool is_ruined;        /* nothing that this process did can be trusted; is_error is set too */
    bool is_error;         /* a function error: `error` is the reason, `body` is unused */
    struct sl_error error; /* also set, for the log, when a partial answer names a failure */
    struct sl_buffer body; /* else the JSON to answer with; initialized by the caller with SL_ANSWER_BYTES */
    size_t checkpoint;     /* k: the lowest index neither applied nor parked; n when there is none */
    size_t parked, set_aside;
    const struct sl_answer_note *notes; /* parked records, then the failed one; in the invocation's arena */
    size_t n_notes;
};

#endif
