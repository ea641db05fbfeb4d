/* What every cmocka test includes, in the order cmocka wants it, and a folder of its own. */
#ifndef SL_TESTS_SUPPORT_TEST_H
#define SL_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/span.h"

/* Compares with text, and shows both when they differ. */
void assert_span_is(struct sl_span span, const char *text);

/* JSON as tests write it: ' stands for ", and \' (in a C string: \\') for an apostrophe. The text lives until
 * the process ends. */
const char *json(const char *text);
struct sl_span json_span(const char *text);
/* The same of a printed text. */
const char *json_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same in place. */
void json_quote(char *text);

/* A fresh empty folder in TMPDIR (else /tmp), removed by test_folder_remove. The path is the caller's to
 * free. */
char *test_folder(void);
/* The same where syncing costs nothing, for tests that do it thousands of times (unless TMPDIR is set). */
char *test_folder_in_memory(void);
void test_folder_remove(char *path);

/* Standard error goes into this file from now on, until it is given back; what a sanitizer reports meanwhile
 * still goes where it went before. */
int test_stderr_into(const char *path);
void test_stderr_back(int before);

/* How many descriptors the process has open, and a few more: to compare with. */
size_t test_open_files(void);

/* The file's bytes, followed by a NUL; NULL when it cannot be read. The caller frees them. */
char *test_read(const char *path, size_t *len);
void test_write(const char *path, const char *text);

#endif
