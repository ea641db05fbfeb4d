/* What every object store, every table and every queue must do, whichever service or file implements it: the
 * same cases run against the embedded sinks and against real services.
 *
 * A test program makes a struct port_suite per side and runs the cases with it as the state. Every case uses
 * keys of its own, so a table or bucket may be shared. */
#ifndef SL_TESTS_SUPPORT_PORT_SUITE_H
#define SL_TESTS_SUPPORT_PORT_SUITE_H

#include "tests/support/test.h"

#include "base/arena.h"
#include "sinks/port.h"

struct port_suite {
    const char *name; /* of the side: "sqlite", "dynamodb" */
    struct sl_call call;

    struct sl_object_port *objects;
    /* The object's bytes as the store has them, followed by a NUL; the caller frees them. NULL when there
     * is none. */
    char *(*read_object)(struct port_suite *suite, const char *key, size_t *len);

    /* Key: PK (S), SK (S). */
    struct sl_table_port *table;
    const char *side_table; /* another of the same place; key: PK (S) alone; NULL: the table takes any key */
    const char *number_table; /* key: PK (N) alone; NULL: likewise */
    bool has_keys;            /* the table knows what its key is */
    bool lacks_nul; /* it refuses U+0000, and half a surrogate pair */

    struct sl_queue_port *queue;
    /* The bodies that arrived since the last call, in any order, in the call's arena. */
    size_t (*read_bodies)(struct port_suite *suite, struct sl_span *out, size_t room);
};

typedef void (*port_case_fn)(struct port_suite *suite);
struct port_case {
    const char *name;
    port_case_fn run;
};

/* Each ends with a NULL name. */
extern const struct port_case port_object_cases[], port_table_cases[], port_value_cases[], port_queue_cases[];
extern const struct port_case port_batch_cases[];                   /* tables: port_suite_batches.c */
extern const struct port_case port_object_batch_cases[];            /* objects: port_suite_objects.c */
extern const struct port_case port_read_cases[], port_scan_cases[]; /* port_suite_reads.c */

/* The case as a cmocka test called "side: name"; `suite` lives as long as the run. */
struct CMUnitTest port_suite_test(struct port_suite *suite, const struct port_case *which);

#endif
