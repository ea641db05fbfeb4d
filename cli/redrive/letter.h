/* Opens mail: finds its letters, and decodes their records as Lambda would deliver them. */
#ifndef SL_CLI_REDRIVE_LETTER_H
#define SL_CLI_REDRIVE_LETTER_H

#include "cli/redrive/mail.h"

/* Sets the mail's letters. Those that cannot be read are UNREADABLE, with a code and a text; the records of
 * the others are decoded, except for pointers. All lives in `arena`. */
void sl_letter_open(struct sl_mail *mail, struct sl_arena *arena);

/* Decodes an event's text into the letter's records. UNREADABLE when it cannot be. */
void sl_letter_decode(struct sl_letter *letter, struct sl_span event, struct sl_arena *arena);

/* Ends a letter's story: FAILED, UNREADABLE. The texts are borrowed. */
void sl_letter_end(struct sl_letter *letter, enum sl_mail_outcome outcome, const char *code,
                   const char *text);

#endif
