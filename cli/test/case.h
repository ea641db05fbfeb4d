/* A case of `sluice test`: records, and what has to leave for them. One JSON file, docs/TEST.md.
 *
 *   {"about": "...", "keys": ["PK","SK"], "given": [...], "expect": [...]}
 *
 * and "config", "records" (a file), "routes" (only what these do is compared), "table", "view". */
#ifndef SL_CLI_TEST_CASE_H
#define SL_CLI_TEST_CASE_H

#include "cli/flags.h"
#include "cli/test/given.h"

struct sl_case {
    const char *path;
    struct sl_span text; /* the file's */
    const char *about;   /* "" when it says nothing */
    const char *config;
    struct sl_given given;
    struct sl_span routes; /* JSON array of names; absent: all */
    struct sl_span expect; /* JSON array; absent: nothing was written yet */
};

struct sl_case_options {
    const char *config;             /* for cases that name none; NULL: see sl_case_read */
    const char *keys;               /* likewise; NULL: none */
    const char *handler_path;       /* as in sl_command */
    const struct sl_flag_list *set; /* variables */
};

/* Reads the file. Its configuration is "config", beside the file; else that of the options; else the first
 * sluice.json of the file's folder, the folder above it and the working directory. All lives in `arena`. */
enum sl_status sl_case_read(const char *path, const struct sl_case_options *options, struct sl_arena *arena,
                            struct sl_case *out, struct sl_error *error) SL_MUST_USE;

/* Runs the records through the configuration's pipeline in this process, as one batch, with targets that
 * record (cli/test/recorder.h). `folder` is empty. Writes
 *
 *   {"routes":[["name",records that it took],...],"lines":[...],"notes":["why ...",...]}
 *
 * where a line is what the recorder writes, or {"route":"copy","parked":CODE,"key":{...}}, the same with
 * "failed" for a record that stays in the stream, or {"error":CODE} for an invocation that failed. */
enum sl_status sl_case_run(const struct sl_case *c, const struct sl_case_options *options, const char *folder,
                           struct sl_buffer *out, struct sl_error *error) SL_MUST_USE;

/* The variables are those of `set`, and each other one of the configuration has a value that fits its place.
 * Those of the environment do not count. */
struct sl_command;
enum sl_status sl_case_variables(struct sl_command *c, const struct sl_flag_list *set,
                                 struct sl_error *error) SL_MUST_USE;

/* The file's text with these lines as "expect": all else stays as it is written. `lines` is a JSON array. */
void sl_case_bless(const struct sl_case *c, struct sl_span lines, struct sl_buffer *out);

#endif
