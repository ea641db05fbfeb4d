/* The command line of a verb: one row per flag feeds the parser, the help, and the refusal of unknown flags.
 *
 * `--name VALUE` and `--name=VALUE`; a value that looks like a flag needs the '='. "--" ends the flags; "-"
 * alone is an operand. `--help` prints the rows. Refused, in one line that names the flag, what is wrong and
 * what fits: an unknown flag, one without a value or with an empty one, a number out of its range, what is no
 * Region or URL. Of a flag that is given twice and is not a list, the last one counts. */
#ifndef SL_CLI_FLAGS_H
#define SL_CLI_FLAGS_H

#include "base/error.h"

/* Exit statuses of the command. The last two are of verbs that prove something: nothing is wrong, but not all
 * is proven; something could not be read. */
enum { SL_EXIT_OK = 0, SL_EXIT_FAILED = 1, SL_EXIT_BAD = 2, SL_EXIT_UNPROVEN = 3, SL_EXIT_UNREADABLE = 4 };

enum sl_flag_type {
    SL_FLAG_END = 0,
    SL_FLAG_BOOL,    /* bool: `--name` sets it, `--no-name` clears it */
    SL_FLAG_INTEGER, /* int64_t */
    SL_FLAG_TEXT,    /* const char *, not empty */
    SL_FLAG_REGION,  /* the same: an AWS Region */
    SL_FLAG_URL,     /* the same: http://host:port or https://host */
    SL_FLAG_LIST,    /* struct sl_flag_list: the flag may be repeated */
    SL_FLAG_HEADING  /* no flag: what the help says above the ones that follow */
};

struct sl_flag_list {
    const char *values[32];
    size_t n;
};

struct sl_flag {
    const char *name; /* without dashes */
    enum sl_flag_type type;
    void *out;
    const char *value; /* the name of its value in the help: "FILE" */
    const char *help;  /* one line */
};

/* What a number may be: such that nothing made of it overflows. */
struct sl_flag_range {
    const char *name;
    int64_t least, most;
};

struct sl_usage {
    const char *line;    /* "replay [flags] INPUT..." */
    const char *summary; /* a paragraph: the help breaks its lines */
    const char *example; /* a command line, or several, at the help's end; NULL: none */
    const struct sl_flag *flags;
    const struct sl_flag_range *ranges; /* of each number, up to one without a name */
    const char *operand;                /* what an operand is, for errors: "INPUT"; NULL: there are none */
    int least, most;                    /* operands; most 0: no limit, unless `operand` is NULL */
};

/* Reads the flags in argv[1..] and moves the operands to argv[1..*n_operands]. When this is not SL_OK, the
 * verb returns `*exit_status`: 0 when the help was asked for and printed, 2 with a line on standard error. */
enum sl_status sl_flags_read(const struct sl_usage *usage, int argc, char **argv, int *n_operands,
                             int *exit_status) SL_MUST_USE;

/* Prints "sluice VERB: " and the error's text on standard error. Returns SL_EXIT_BAD. */
int sl_flags_complain(const char *verb, const struct sl_error *error);

/* "90s", "5m", "2h", "7d": the number, and the unit in seconds. False: it is not one. */
bool sl_flags_span(const char *text, int64_t *number, int64_t *unit_s);

/* The end of a verb that has printed with stdio: `result`, or SL_EXIT_FAILED with a line on standard error
 * when standard output could not be written. */
int sl_flags_end(const char *verb, int result) SL_MUST_USE;

#endif
