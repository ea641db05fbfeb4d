/* What a text that came from outside may say: never a secret, and nothing of what a request carried.
 *
 * Servers repeat what they were sent: a header in a message, an item's value in a code, once more escaped or
 * encoded. So a text is looked at as it is and in its decoded forms (JSON's escapes, XML's entities, percent
 * escapes, each up to three deep; base64), and what may not be shown becomes "...":
 * - of a secret: the whole of it from 6 bytes on, and any 16 bytes of a longer one, also when blanks or line
 *   breaks divide it;
 * - of what the request carried, in its decoded forms too: every word that shares 4 bytes in a row with it,
 *   and every shorter word that is a word there.
 * The plain words of AWS's own messages (aws/mask_words.h) and our own names (`own`) are shown even where an
 * item holds them; a secret is masked there too. Only then is the text made clean and cut.
 *
 * The time is linear in what was carried, and nothing of it is read when the text has no other words. */
#ifndef SL_AWS_MASK_H
#define SL_AWS_MASK_H

#include "base/span.h"

/* So much of a text is looked at; what follows is never shown. */
#define SL_MASK_TEXT_BYTES 4096
/* The longest text that is shown, with its NUL. */
#define SL_MASK_SHOWN_BYTES 400
/* When more was carried, it is not searched (see is_closed). */
#define SL_MASK_CARRIED_BYTES (32u * 1024 * 1024)

#define SL_MASK_SECRETS 32
#define SL_MASK_OWN     6

struct sl_mask {
    struct sl_span secrets[SL_MASK_SECRETS];
    size_t n_secrets;
    const struct sl_span *carried; /* the body's pieces, as sent */
    size_t n_carried;
    struct sl_span path;             /* likewise; an object's key is in it */
    struct sl_span own[SL_MASK_OWN]; /* names whose words may be shown: target, operation, region */
    size_t n_own;
    bool is_closed; /* what was carried is not searched: only plain words and our own names are shown */
};

/* One more secret or own name; an empty one counts for nothing. Borrowed. */
void sl_mask_secret(struct sl_mask *mask, struct sl_span secret);
void sl_mask_own(struct sl_mask *mask, struct sl_span name);

/* Writes to `out` what may be shown of `text`, as one clean line that ends with a NUL and fits into `room`.
 * Returns its bytes. */
size_t sl_mask_show(const struct sl_mask *mask, struct sl_span text, char *out, size_t room);

/* Whether all of `text` may be shown: for codes, which are shown whole or not at all. */
bool sl_mask_allows(const struct sl_mask *mask, struct sl_span text);

#endif
