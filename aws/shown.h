/* What of a server's words goes into results, logs and reports. Every code and every message from outside
 * passes here; see aws/mask.h for the rule. */
#ifndef SL_AWS_SHOWN_H
#define SL_AWS_SHOWN_H

#include "aws/job.h"

/* A batch of 500 entries may be refused with 500 messages: after so many bytes of the request were compared,
 * a job's further messages show plain words only. */
#define SL_SHOWN_SEARCH_BYTES (64u * 1024 * 1024)

struct sl_shown {
    char code[SL_REFUSAL_CODE_BYTES]; /* never empty */
    char text[SL_MASK_SHOWN_BYTES];   /* "" when there is none */
};

/* A refusal of the job's request. While job->answer is set. */
void sl_shown_refusal(struct sl_job *job, const struct sl_refusal *refusal, struct sl_shown *out);

/* A code and a message, both decoded, of a part of the answer: an entry, a reason. Either may be absent. A
 * code that may not be shown, or cannot be a code, becomes "Refused". */
void sl_shown_part(struct sl_job *job, struct sl_span code, struct sl_span message, struct sl_shown *out);

/* The same of a text alone. */
void sl_shown_text(struct sl_job *job, struct sl_span text, char out[SL_MASK_SHOWN_BYTES]);

#endif
