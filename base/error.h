/* Filling a struct sl_error. See base/types.h for what it holds. */
#ifndef SL_BASE_ERROR_H
#define SL_BASE_ERROR_H

#include "base/types.h"

#define SL_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Sets `error` when it is not NULL and not set yet, and returns `status`, so that a caller can fail in one
 * line. Text that does not fit is cut at a whole UTF-8 character; control bytes become '?'. */
enum sl_status sl_fail(struct sl_error *error, enum sl_status status, const char *code, const char *format,
                       ...) SL_PRINTF(4, 5);

/* The same, at a byte of the input. */
enum sl_status sl_fail_at(struct sl_error *error, enum sl_status status, const char *code, size_t offset,
                          const char *format, ...) SL_PRINTF(5, 6);

/* Puts "context: " before the text of a set error: the caller knows on what, the callee why. */
void sl_error_context(struct sl_error *error, const char *format, ...) SL_PRINTF(2, 3);

void sl_error_clear(struct sl_error *error);

/* Ends both texts with a NUL: a plugin may have filled them to the last byte. NULL is fine. */
void sl_error_seal(struct sl_error *error);

/* "OK", "RETRY", "REJECT", "FATAL". */
const char *sl_status_name(enum sl_status status);

/* Ends the process with one line: for failures after which nothing can continue (out of memory). Lambda then
 * delivers the batch again. */
_Noreturn void sl_die(const char *format, ...) SL_PRINTF(1, 2);

#endif
