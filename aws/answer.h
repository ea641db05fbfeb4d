/* What the kinds of jobs that speak JSON ask of an answer before they take it for a success.
 *
 * Answers are read by our own scanner, never by a parser that refuses what DynamoDB stores: NUL, lone halves
 * of surrogate pairs, and any depth up to SL_JSON_DEPTH. */
#ifndef SL_AWS_ANSWER_H
#define SL_AWS_ANSWER_H

#include "aws/job.h"
#include "base/json_walk.h"

/* Whether a text from a service is one JSON value in which no object has a name twice: of two
 * UnprocessedItems nobody knows which counts. Every answer is looked at with this. */
bool sl_answer_is_json(struct sl_span text) SL_MUST_USE;

/* Whether the answer is one whole JSON object that is not in the shape of an error (a top-level `__type`,
 * `message` or `code`, in any case). Members that we do not know are fine: AWS adds some. The object is then
 * in `out`, borrowed like the answer. */
bool sl_answer_object(const struct sl_job *job, struct sl_span *out) SL_MUST_USE;

/* Whether a member of this name makes an object an error's, as it is written: `__type`, `message`, ... */
bool sl_answer_is_error_member(struct sl_span name);

/* For a kind whose operation answers with nothing that we need: SL_JOB_DONE for such an object. */
enum sl_job_next sl_answer_is_object(struct sl_job *job);

/* The text of a member that is a string, as it is written between its quotes; absent when it is anything
 * else. */
struct sl_span sl_answer_text(struct sl_span object, const char *name);

/* The member when it begins with `opens`: '{' for an object, '[' for an array; absent when it is anything
 * else. */
struct sl_span sl_answer_container(struct sl_span object, const char *name, char opens);

#endif
