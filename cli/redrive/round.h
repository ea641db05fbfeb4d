/* Works through a page of mail, in waves: in a wave no record is there twice, and of a FIFO group only one
 * message. */
#ifndef SL_CLI_REDRIVE_ROUND_H
#define SL_CLI_REDRIVE_ROUND_H

#include "cli/redrive/crew.h"
#include "cli/redrive/pointer.h"

struct sl_round {
    struct sl_crew *crew;
    struct sl_pointer *pointer;
    const char *route; /* events and pointers go through this route alone; NULL: through all */
    bool is_fifo;
    bool skips_unreadable; /* FIFO: an unreadable message does not hold its group back */
    const volatile int *stop;
    void (*keep)(void *arg);
    void *keep_arg;
};

/* Runs every WAITING letter of the page, and sets its outcome. A failure ends the run: what is still WAITING
 * was not begun. */
enum sl_status sl_round_run(const struct sl_round *round, struct sl_mail_page *page, struct sl_arena *arena,
                            struct sl_error *error) SL_MUST_USE;

#endif
