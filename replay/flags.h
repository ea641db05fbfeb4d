/* Command-line flags: one row per flag feeds the parser, the help and the refusal of what is unknown.
 *
 * `--name VALUE` and `--name=VALUE`; a value that looks like a flag must be given with '='. "--" ends the
 * flags, "-" alone is an operand. `--help` prints the rows. */
#ifndef SL_REPLAY_FLAGS_H
#define SL_REPLAY_FLAGS_H

#include "base/error.h"

enum sl_flag_type {
    SL_FLAG_END = 0,
    SL_FLAG_BOOL,    /* bool: `--name` sets it, `--no-name` clears it */
    SL_FLAG_INTEGER, /* int64_t */
    SL_FLAG_TEXT,    /* const char * */
    SL_FLAG_LIST     /* struct sl_flag_list: may be given several times */
};

struct sl_flag_list {
    const char *values[32];
    size_t n;
};

struct sl_flag {
    const char *name; /* without dashes */
    enum sl_flag_type type;
    void *out;
    const char *value; /* what stands for the value in the help: "FILE" */
    const char *help;  /* one line */
};

struct sl_usage {
    const char *line;    /* "replay [flags] INPUT..." */
    const char *summary; /* one or more lines */
    const struct sl_flag *flags;
};

/* Reads the flags in argv[1..] and moves the operands to argv[1..*n_operands]. SL_OK; else what is to be
 * returned from the verb stands in `*exit_status`: 0 when the help was asked for and printed, 2 with a line
 * on standard error. */
enum sl_status sl_flags_read(const struct sl_usage *usage, int argc, char **argv, int *n_operands,
                             int *exit_status) SL_MUST_USE;

#endif
