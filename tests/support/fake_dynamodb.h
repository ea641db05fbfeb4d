/* DynamoDB in the test's process: a service for scripted_server.h over a file of SQLite, so that the cases of
 * port_suite.h run against the requests of dynamodb://.
 *
 * It evaluates the expressions itself and keeps the service's rules of a request: 25 writes, 100 reads or
 * actions, 16 MB, no key twice, keys as the schema has them, no name and no value that no expression uses.
 *
 * Tables: "main" (PK and SK of type S), "side" (PK of type S), "numbers" (PK of type N). */
#ifndef SL_TESTS_SUPPORT_FAKE_DYNAMODB_H
#define SL_TESTS_SUPPORT_FAKE_DYNAMODB_H

#include "tests/support/scripted_server.h"

struct fake_dynamodb;

/* `folder` holds its file. */
struct fake_dynamodb *fake_dynamodb_open(const char *folder);
void fake_dynamodb_close(struct fake_dynamodb *fake);

/* One in so many requests is refused for now (throttled, a conflict, the service's own error), and one in so
 * many entries of a batch is left out. 0: none. Nothing that is refused has been done. */
void fake_dynamodb_trouble(struct fake_dynamodb *fake, unsigned one_in);
/* How often it has done so. */
size_t fake_dynamodb_troubled(const struct fake_dynamodb *fake);

/* Which rule of a request was broken first; NULL: none. */
const char *fake_dynamodb_fault(const struct fake_dynamodb *fake);

/* For scripted_server_start. */
void fake_dynamodb_answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply);

#endif
