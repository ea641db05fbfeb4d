/* What a table's images look like, learned while they are read. For the decoder alone.
 *
 * Images of one table repeat the same names and types, nearly always in one order. The text before an
 * attribute's content ("status":{"S": with its whitespace, if any) is kept the first time it is accepted;
 * where the same bytes are in the same place again, they are not read a second time. An attribute that is
 * missing is skipped, a new one is learned in its place. */
#ifndef SL_STREAMS_DECODE_FORM_H
#define SL_STREAMS_DECODE_FORM_H

#include "base/scan.h"
#include "streams/record_layout.h"

#define SL_SLOT_BYTES 32 /* two blocks; longer ones are read anew each time */
#define SL_FORM_SLOTS 40
#define SL_FORMS      8
/* How many attributes may be missing in a row before all is read anew. */
#define SL_SLOTS_AHEAD 4

struct sl_slot {
    char text[SL_SLOT_BYTES];
    uint8_t len;
    uint8_t type;  /* enum sl_type */
    uint8_t child; /* the form of the maps in it; 0: none yet */
    struct sl_name_hash name;
};

struct sl_form {
    unsigned n;
    struct sl_slot slots[SL_FORM_SLOTS];
};

/* The first is that of Keys, the second that of both images; the others are those of maps within. */
enum { SL_FORM_KEYS, SL_FORM_IMAGE, SL_FORM_FIRST_CHILD };

struct sl_forms {
    unsigned n;
    struct sl_form list[SL_FORMS];
};

/* Bytes that must follow the place where slots are compared: the longest slot, and a little of the
 * content. */
#define SL_FORM_AHEAD 64

static inline void sl_forms_init(struct sl_forms *forms)
{
    forms->n = SL_FORM_FIRST_CHILD;
    for (unsigned i = 0; i < SL_FORMS; i++)
        forms->list[i].n = 0;
}

/* The slot whose text is at `p`: the one at `*at` or one soon after; `*at` becomes the place after it. NULL:
 * none.
 * */
static inline struct sl_slot *sl_form_match(struct sl_form *form, unsigned *at, const char *p)
{
    unsigned last = *at + SL_SLOTS_AHEAD < form->n ? *at + SL_SLOTS_AHEAD : form->n;
    for (unsigned i = *at; i < last; i++) {
        if (!sl_scan_is(p, form->slots[i].text, form->slots[i].len))
            continue;
        *at = i + 1;
        return &form->slots[i];
    }
    return NULL;
}

/* Takes in the text from `p` to `content` at `*at`; returns its slot, NULL when it is too long. */
static inline struct sl_slot *sl_form_learn(struct sl_form *form, unsigned *at, const char *p,
                                            const char *content, enum sl_type type, struct sl_name_hash name)
{
    size_t len = (size_t)(content - p);
    if (len > SL_SLOT_BYTES || *at >= SL_FORM_SLOTS)
        return NULL;
    struct sl_slot *slot = &form->slots[*at];
    if (form->n < SL_FORM_SLOTS) {
        memmove(slot + 1, slot, (form->n - *at) * sizeof(*slot));
        form->n++;
    }
    *slot = (struct sl_slot){.len = (uint8_t)len, .type = (uint8_t)type, .name = name};
    memcpy(slot->text, p, len);
    ++*at;
    return slot;
}

/* The form of the maps in a slot, NULL when all are taken. */
static inline struct sl_form *sl_form_child(struct sl_forms *forms, struct sl_slot *slot)
{
    if (!slot)
        return NULL;
    if (slot->child == 0 && forms->n < SL_FORMS)
        slot->child = (uint8_t)forms->n++;
    return slot->child ? &forms->list[slot->child] : NULL;
}

#endif
