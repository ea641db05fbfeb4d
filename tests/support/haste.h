/* A process whose time runs faster: seconds of waiting that a promise is about ("within a minute") become
 * parts of one. Its clocks run so many times as fast from a moment on, and its waits end so much earlier;
 * what other processes do is not faster. Waits for a condition of a thread are not shortened. */
#ifndef SL_TESTS_SUPPORT_HASTE_H
#define SL_TESTS_SUPPORT_HASTE_H

#include <stdint.h>
#include <time.h>

/* From now on, in this process. 1: no longer (the clocks keep what they have won). */
void haste(unsigned factor);

/* Its clocks are as all others again: they go back. */
void haste_forget(void);

/* How far its clocks are ahead; and how long it really waits. */
int64_t haste_ahead_ns(void);
struct timespec haste_shortened(const struct timespec *wait);
int haste_shortened_ms(int ms); /* below 0: without an end */

#endif
