/* JSON Schema, as far as docs/sluice.schema.json uses it. */
#ifndef SL_TESTS_SUPPORT_SCHEMA_H
#define SL_TESTS_SUPPORT_SCHEMA_H

#include <jansson.h>

/* MAYBE: it depends on something that is not judged here, such as a pattern that looks ahead. */
enum test_schema_verdict { TEST_SCHEMA_NO, TEST_SCHEMA_MAYBE, TEST_SCHEMA_YES };

/* Does the value fit the schema? `root` holds the "$defs" that the schema refers to. */
enum test_schema_verdict test_schema_fits(const json_t *root, const json_t *schema, const json_t *value);

#endif
