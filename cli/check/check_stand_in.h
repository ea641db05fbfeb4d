/* A value for a variable that is not set, by the place where it is: "sns:${TOPIC_ARN}" needs an ARN of SNS,
 * "region=${WHERE}" a Region, "${FORMAT}" of an option with choices one of them. */
#ifndef SL_CLI_CHECK_CHECK_STAND_IN_H
#define SL_CLI_CHECK_CHECK_STAND_IN_H

#include "base/arena.h"
#include "handlers/handler.h"

struct sl_stand_in_place {
    const struct sl_option *row; /* of the option that the text is of, or in; NULL: not known */
    /* The name of the member that holds the text, or of its list. "add/": a member of "add", whose name is
     * the user's. */
    const char *member;
    bool is_failure;              /* a target for rejected records */
    bool is_spans;                /* a target for spans */
    bool is_nested;               /* below the option */
    struct sl_span before, after; /* of the text */
    struct sl_span name;          /* of the variable */
};

/* The value, in the arena. `is_special`: the place needs it so; any other place takes it, too. Else it is the
 * name itself, in letters that every service takes: ARCHIVE_BUCKET becomes archive-bucket. */
const char *sl_check_stand_in(const struct sl_stand_in_place *place, struct sl_arena *arena,
                              bool *is_special);

#endif
