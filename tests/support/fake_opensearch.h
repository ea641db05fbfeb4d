/* An index of OpenSearch in the test's process, for scripted_server.h: the cases of port_suite.h run against
 * the requests of opensearch://.
 *
 * It is called "idx". It knows multi gets, bulks with conditions and with our script, searches by digest and
 * of documents without one, refreshes and sizes. It keeps the service's rules: ids of 512 bytes, result
 * windows of 10,000, bulks as the guides ask for. */
#ifndef SL_TESTS_SUPPORT_FAKE_OPENSEARCH_H
#define SL_TESTS_SUPPORT_FAKE_OPENSEARCH_H

#include "tests/support/scripted_server.h"

struct fake_opensearch;

struct fake_opensearch *fake_opensearch_open(void);
void fake_opensearch_close(struct fake_opensearch *fake);

/* One in so many requests is refused for now, and one in so many entries of a bulk: the shard is busy or
 * away, or somebody else wrote the document. 0: none. Nothing that is refused has been done. */
void fake_opensearch_trouble(struct fake_opensearch *fake, unsigned one_in);
size_t fake_opensearch_troubled(const struct fake_opensearch *fake);

/* The index that "idx" is an alias of from now on; NULL: it is the index itself. */
void fake_opensearch_swap(struct fake_opensearch *fake, const char *concrete);

/* A document that somebody else writes: id and source, JSON. */
void fake_opensearch_put(struct fake_opensearch *fake, const char *id, struct sl_span source);

/* So many documents without a digest. */
void fake_opensearch_many(struct fake_opensearch *fake, size_t n);

/* How many requests of an operation (tests/support/honest.h) there were, and the most entries of one. */
size_t fake_opensearch_requests(const struct fake_opensearch *fake, const char *operation);
size_t fake_opensearch_most(const struct fake_opensearch *fake, const char *operation);

/* Which rule of a request was broken first; NULL: none. */
const char *fake_opensearch_fault(const struct fake_opensearch *fake);

/* For scripted_server_start. */
void fake_opensearch_answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply);

#endif
