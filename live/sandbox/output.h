/* What the function writes to its standard output and standard error: its log, as in Lambda.
 *
 * It goes to standard error, so that results alone are on standard output. A line that was written before,
 * but for request ids and times, is counted instead: an environment that is broken says the same at every
 * retry. The counts come at the end. A file, if one is named, gets every line as it was. */
#ifndef SL_LIVE_SANDBOX_OUTPUT_H
#define SL_LIVE_SANDBOX_OUTPUT_H

#include "base/error.h"
#include "base/span.h"

/* A longer line is taken in pieces. */
#define SL_OUTPUT_LINE_BYTES (64u * 1024)

/* So many different lines are told apart; further ones are all written. */
#define SL_OUTPUT_LINES 1024

struct sl_output;

/* `path` NULL: to standard error, with repeated lines counted. SL_REJECT "CannotWrite". */
enum sl_status sl_output_open(const char *path, struct sl_output **out, struct sl_error *error) SL_MUST_USE;

/* Writes how often lines were repeated, and begins to count anew. False: the file is incomplete, which it has
 * said. NULL is fine. */
bool sl_output_settle(struct sl_output *output);

/* Settles, and frees it. False as above. */
bool sl_output_close(struct sl_output *output);

/* The line's hash without request ids and times: equal for lines that count as the same. */
uint64_t sl_output_hash(struct sl_span line);

/* One line, without its newline. */
void sl_output_line(struct sl_output *output, struct sl_span line);

/* The stream of one process. */
struct sl_output_pipe {
    int fd; /* read end, not blocking; -1: none */
    char *line;
    size_t len;
};

/* Makes a pipe; the write end is for the process, and the caller closes it. False: there is none to be had.
 */
bool sl_output_pipe_open(struct sl_output_pipe *pipe, int *write_fd) SL_MUST_USE;

/* Takes what is there, and hands on the whole lines. */
void sl_output_pipe_read(struct sl_output_pipe *pipe, struct sl_output *output);

/* The process is gone: takes the rest, with a line that has no end. */
void sl_output_pipe_close(struct sl_output_pipe *pipe, struct sl_output *output);

#endif
