/* Runs records through the routes: one sandbox for each route of the configuration that is asked for, started
 * once and used for the whole run. Nothing is parked a second time. */
#ifndef SL_CLI_REDRIVE_CREW_H
#define SL_CLI_REDRIVE_CREW_H

#include "cli/redrive/mail.h"

struct sl_crew;

struct sl_crew_options {
    const char *config, *handler_path;
    const char *trace; /* one file for each sandbox: FILE, FILE.2, ...; NULL: none */
    int64_t timeout_s; /* of an invocation */
    int64_t parallel;  /* invocations of one route at a time; records of one item go one after the other */
    const volatile int *stop; /* not 0: no invocation is begun any more */
    void (*keep)(void *arg);  /* called between invocations */
    void *keep_arg;
};

/* A batch for one route. */
struct sl_crew_load {
    const char *route;      /* NULL: all routes */
    int64_t epoch;          /* of the route when the records came; -1: its own */
    const char *stream_arn; /* of the first record: where the function is; "": not known */
    bool is_kinesis;
    bool keeps_order; /* the letters' order counts; else that of their sequence numbers */
    struct sl_letter **letters;
    size_t n;
};

/* "arn:aws:dynamodb:REGION:ACCOUNT:" of a stream's ARN: what a function sees of where it is. "" of "". */
struct sl_span sl_crew_place(const char *arn);

struct sl_crew *sl_crew_new(const struct sl_crew_options *options); /* borrows them */
void sl_crew_destroy(struct sl_crew *crew);                         /* NULL is fine */

/* Refuses what no sandbox could run with: before any message is taken. */
enum sl_status sl_crew_check(struct sl_crew *crew, const char *route, struct sl_error *error) SL_MUST_USE;

/* Sets each letter's outcome: DONE, FAILED, or still WAITING when it was stopped. `arena`: of the page.
 * SL_REJECT "NoRoute": the configuration has no such route; nothing was run. SL_RETRY "TargetDown": delivery
 * after delivery failed without a record at fault. SL_FATAL: the sandbox does not start. */
enum sl_status sl_crew_run(struct sl_crew *crew, const struct sl_crew_load *load, struct sl_arena *arena,
                           struct sl_error *error) SL_MUST_USE;

/* Applies a letter that was set aside, in the sandbox of its route, and sets its outcome: DONE or FAILED.
 * Errors as above. */
enum sl_status sl_crew_apply(struct sl_crew *crew, struct sl_letter *letter, struct sl_arena *arena,
                             struct sl_error *error) SL_MUST_USE;

#endif
