/* What a Distributed Map's ResultWriter left in S3, read in bounded memory.
 *
 * manifest.json names the result files by the state of the children in them: {"DestinationBucket":…,
 * "MapRunArn":…,"ResultFiles":{"SUCCEEDED":[{"Key":…,"Size":n}],"FAILED":[…],"PENDING":[…]}}. A file is an
 * array with an object for each child, whose output is the text of its member "Output". (The Step Functions
 * Developer Guide, ResultWriter.) */
#ifndef SL_RUNTIME_WORK_RESULTS_H
#define SL_RUNTIME_WORK_RESULTS_H

#include "runtime/work/config.h"
#include "sinks/port.h"

/* A child's entry in a result file: its input and its output have 256 KB each at most, escaped once more. */
#define SL_WORK_RESULT_BYTES ((size_t)4 * 1024 * 1024)

struct sl_work_results {
    const struct sl_work_config *config;
    struct sl_object_port *port; /* config->place, opened */
    /* Called for each child that succeeded with its output, checked JSON, borrowed until it returns. A
     * failure ends the reading. */
    enum sl_status (*each)(void *context, struct sl_span output, struct sl_error *error);
    void *context;
};

/* The whole object, in the call's arena; SL_REJECT, code "BadResults", when it is longer than `max_bytes`. */
enum sl_status sl_work_read_object(struct sl_object_port *port, struct sl_span key, size_t max_bytes,
                                   const struct sl_call *call, struct sl_span *out,
                                   struct sl_error *error) SL_MUST_USE;

/* Reads the manifest at the key (below the place) and then its files. A manifest with children that failed or
 * are pending, of another bucket, or with files outside the place is SL_REJECT. */
enum sl_status sl_work_results_read(const struct sl_work_results *results, struct sl_span manifest,
                                    const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

#endif
