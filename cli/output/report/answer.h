/* An answer in words: "Error: poison", "Names 2 records: 17, 21". */
#ifndef SL_CLI_OUTPUT_REPORT_ANSWER_H
#define SL_CLI_OUTPUT_REPORT_ANSWER_H

#include "esm/esm.h"

/* At most so many bytes of it are said, and an ellipsis. */
#define SL_ANSWER_TEXT_BYTES 500

/* `out` is empty, and may grow to the answer's size. `counts`: whether the mapping heeds batchItemFailures.
 */
void sl_answer_say(const struct sl_esm_result *result, bool counts, struct sl_buffer *out);

#endif
