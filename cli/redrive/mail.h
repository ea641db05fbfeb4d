/* Mail: what a place of failed messages holds, and what became of it. Everything that redrive's files tell
 * each other is here. All of it lives in the arena of one page. */
#ifndef SL_CLI_REDRIVE_MAIL_H
#define SL_CLI_REDRIVE_MAIL_H

#include "esm/esm.h"
#include "live/source/dead_letters.h"

enum sl_mail_outcome {
    SL_MAIL_WAITING = 0, /* nothing was done with it: the run ended before */
    SL_MAIL_DONE,        /* all of its records were handled */
    SL_MAIL_FAILED,      /* a record failed again, or its records could not be had */
    SL_MAIL_UNREADABLE,
    SL_MAIL_UNMATCHED, /* --match, --route, --since or --limit leaves it out */
    SL_MAIL_HELD_BACK, /* FIFO: a message before it in its group is not done */
    SL_MAIL_LISTED,    /* --dry-run */
    SL_MAIL_OUTCOMES
};

struct sl_mail;

/* One failed record, event or pointer. A message mostly has one. */
struct sl_letter {
    struct sl_dead_letter dead;
    struct sl_mail *mail;
    const char *id;    /* the message's, for lines; one of several in a message has a number after it */
    const char *key;   /* of the first record's item, JSON; "-": not known */
    const char *table; /* "-": not known */
    bool is_kinesis;
    struct sl_esm_record *records; /* as Lambda would deliver them; their tag is the letter */
    size_t n;
    size_t n_handled, n_failed; /* of its records */
    enum sl_mail_outcome outcome;
    const char *code, *text; /* of a failure; "" when there is none */
};

enum sl_mail_removal { SL_MAIL_KEPT, SL_MAIL_REMOVED, SL_MAIL_NOT_REMOVED };

/* One message, object or line: what can be removed as one. */
struct sl_mail {
    const char *id;
    bool is_line;      /* of a text: an id in an envelope says more than the line's number */
    const char *group; /* FIFO; else NULL */
    struct sl_span body;
    const char *unreadable; /* not NULL: it could not even be read, and why; `body` is absent */
    int64_t sent_ms;        /* since 1970; 0: not known */
    uint64_t place;         /* its mailbox's own */
    struct sl_span tag;     /* likewise */
    struct sl_letter *letters;
    size_t n;
    enum sl_mail_removal removal;
    const char *removal_code; /* NOT_REMOVED: why */
};

struct sl_mail_page {
    struct sl_mail *list;
    size_t n, room;
    bool is_last;
};

/* What is taken at a time, so that memory has a bound: a page of mail, or the first message above it. */
#define SL_MAIL_PAGE       200
#define SL_MAIL_PAGE_BYTES ((size_t)8 * 1024 * 1024)
/* One message, object or line: S3's failure record has an event of 6 MB, escaped. */
#define SL_MAIL_BYTES ((size_t)64 * 1024 * 1024)

/* Whether every letter of the message is done. */
static inline bool sl_mail_is_done(const struct sl_mail *mail)
{
    size_t done = 0;
    while (done < mail->n && mail->letters[done].outcome == SL_MAIL_DONE)
        done++;
    return mail->n && done == mail->n;
}

#endif
