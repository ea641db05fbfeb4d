/* Where mail comes from: a queue, a bucket's prefix, a folder, a file, standard input. Page by page, so that
 * memory has a bound whatever there is.
 *
 * A queue's messages are hidden from others from the moment they are received. They stay so, also those of
 * earlier pages, as long as `keep` is called now and then; `finish` lets go of all that were not removed. */
#ifndef SL_CLI_REDRIVE_MAILBOX_H
#define SL_CLI_REDRIVE_MAILBOX_H

#include "cli/redrive/mail.h"
#include "sinks/target.h"

struct sl_mailbox {
    const char *name; /* for messages */
    bool is_fifo, is_queue;
    bool can_remove;
    int64_t wants; /* so many more messages are asked for: no need to fetch more; set before `next` */
    /* The next page. On failure nothing was lost: what is in `out` is to be settled, then the box finished.
     * SL_REJECT "NearLimit": one more receive would move messages to another queue. */
    enum sl_status (*next)(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *out,
                           struct sl_error *error);
    /* The page has been worked through: removes what is done, if `removes`, and sets each `removal`. */
    void (*settle)(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *page, bool removes);
    void (*keep)(struct sl_mailbox *box); /* cheap when there is nothing to do */
    /* SL_RETRY: not all is well, and `error` says what: messages that could not be let go of, or more that
     * could not be had now. */
    enum sl_status (*finish)(struct sl_mailbox *box, struct sl_error *error);
    void (*close)(struct sl_mailbox *box);
};

struct sl_mailbox_options {
    struct sl_sinks *sinks;
    const volatile int *stop; /* not 0: nothing more is fetched */
    int64_t hidden_s;         /* visibility timeout; extended in time */
    int64_t wait_s;           /* of a receive */
};

/* sqs://QUEUE and what else names a queue. Asks for its attributes. SL_REJECT "NearLimit": its RedrivePolicy
 * moves messages after so few receives that none can be spent here. */
enum sl_status sl_mailbox_queue(const struct sl_mailbox_options *options, const char *url,
                                struct sl_mailbox **out, struct sl_error *error) SL_MUST_USE;
/* s3://BUCKET/PREFIX, file:FOLDER or a folder. */
enum sl_status sl_mailbox_objects(const struct sl_mailbox_options *options, const char *place,
                                  struct sl_mailbox **out, struct sl_error *error) SL_MUST_USE;
/* A file, gzip or plain, or "-". */
enum sl_status sl_mailbox_text(const struct sl_mailbox_options *options, const char *name,
                               struct sl_mailbox **out, struct sl_error *error) SL_MUST_USE;

/* Any of them, by its name. */
enum sl_status sl_mailbox_open(const struct sl_mailbox_options *options, const char *name,
                               struct sl_mailbox **out, struct sl_error *error) SL_MUST_USE;

/* Adds one to the page, zeroed. */
struct sl_mail *sl_mailbox_add(struct sl_mail_page *page, struct sl_arena *arena);

/* Nothing to keep or to let go of: for boxes that hold nothing. */
void sl_mailbox_keep_nothing(struct sl_mailbox *box);
enum sl_status sl_mailbox_finish_nothing(struct sl_mailbox *box, struct sl_error *error);

#endif
