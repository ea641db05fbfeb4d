/* S3 in the test's process, for scripted_server.h: the cases of port_suite.h run against the requests of
 * s3://.
 *
 * Path style, any bucket. It knows PutObject with If-None-Match, GetObject with Range and If-Match,
 * ListObjectsV2 and DeleteObject with If-Match, and checks what S3 checks: the CRC-32 of what is put, keys of
 * 1,024 bytes, ranges, pages of 1,000. */
#ifndef SL_TESTS_SUPPORT_FAKE_S3_H
#define SL_TESTS_SUPPORT_FAKE_S3_H

#include "tests/support/scripted_server.h"

struct fake_s3;

struct fake_s3 *fake_s3_open(void);
void fake_s3_close(struct fake_s3 *fake);

/* One in so many requests is refused for now. 0: none. Nothing that is refused has been done. */
void fake_s3_trouble(struct fake_s3 *fake, unsigned one_in);
size_t fake_s3_troubled(const struct fake_s3 *fake);

/* An object that somebody else puts, by its whole key. */
void fake_s3_put(struct fake_s3 *fake, const char *key, struct sl_span body);

/* An object's bytes by its whole key, bucket included ("bucket/a/b"); absent when there is none. Borrowed
 * until the next request. */
struct sl_span fake_s3_object(const struct fake_s3 *fake, const char *key);

/* Which rule of a request was broken first; NULL: none. */
const char *fake_s3_fault(const struct fake_s3 *fake);

/* For scripted_server_start. */
void fake_s3_answer(void *fake, const struct scripted_request *request, struct scripted_reply *reply);

#endif
