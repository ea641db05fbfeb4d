/* What is printed of a run: a line for each message, and the sum. */
#ifndef SL_CLI_REDRIVE_TALLY_H
#define SL_CLI_REDRIVE_TALLY_H

#include "cli/redrive/mail.h"

/* Codes that are counted by name; the rest is "others". */
#define SL_TALLY_CODES      64
#define SL_TALLY_CODE_BYTES 64

struct sl_redrive_tally {
    bool is_dry;
    bool shows_progress;                 /* on a terminal: one line that is drawn anew */
    uint64_t messages[SL_MAIL_OUTCOMES]; /* each by its worst letter */
    uint64_t removed, not_removed;
    struct sl_redrive_tally_code {
        char name[SL_TALLY_CODE_BYTES];
        char parked[SL_TALLY_CODE_BYTES]; /* the code with which one of them came here; "" */
        uint64_t n;
    } codes[SL_TALLY_CODES]; /* of those that failed or cannot be read; --dry-run: of all */
    size_t n_codes;
    uint64_t others;
};

/* Prints the page's lines, and counts it. */
void sl_redrive_tally_add(struct sl_redrive_tally *tally, const struct sl_mail_page *page, int64_t now_ms);

/* What the sum says to do next, in the operator's own words. */
struct sl_redrive_tally_next {
    const char *config, *operand;
    bool could_remove; /* --delete-done was not given, and would work */
};

void sl_redrive_tally_print(struct sl_redrive_tally *tally, const struct sl_redrive_tally_next *next);

#endif
