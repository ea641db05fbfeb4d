/* Masks texts from outside, in linear time: the runs of 4 bytes of the text in all its forms are put into a
 * table, and what was carried is read over it once. */
#include "aws/mask.h"

#include "aws/mask_form.h"
#include "aws/mask_words.h"
#include "base/arena.h"
#include "base/clean.h"

#define WHOLE_FROM  6  /* a secret of so many bytes is one; a shorter one would be found everywhere */
#define RUN_BYTES   16 /* of a longer secret */
#define GRAM_BYTES  4  /* of what was carried */
#define TABLE_SLOTS 4096
#define FILTER_BITS 65536

/* A run of bytes of the text in one of its forms, and where that stands in the text. */
struct gram {
    struct gram *next;
    uint64_t key;
    uint16_t begin, end;
    bool is_bare; /* no plain word in it: the marks between words count too */
};

struct work {
    const struct sl_mask *mask;
    struct sl_arena *arena;
    struct sl_span text;
    bool is_cut;  /* the text goes on after `text` */
    bool *plain;  /* of each byte: part of a plain word or of our own names */
    bool *hidden; /* of each byte: not shown */
    bool any_grams;
    struct gram *slots[TABLE_SLOTS];
    uint64_t filter[FILTER_BITS / 64];
};

void sl_mask_secret(struct sl_mask *mask, struct sl_span secret)
{
    if (secret.len >= WHOLE_FROM && mask->n_secrets < SL_MASK_SECRETS)
        mask->secrets[mask->n_secrets++] = secret;
}

void sl_mask_own(struct sl_mask *mask, struct sl_span name)
{
    if (name.len && mask->n_own < SL_MASK_OWN)
        mask->own[mask->n_own++] = name;
}

/* ---- plain words ---- */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* What a word is made of; all else is only hidden where no plain word is near. */
static bool is_wordy(char c)
{
    return is_alnum(c) || (unsigned char)c >= 0x80;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static size_t alnum_bytes(struct sl_span text)
{
    size_t n = 0;
    while (n < text.len && is_alnum(text.ptr[n]))
        n++;
    return n;
}

static bool is_own(const struct sl_mask *mask, struct sl_span word)
{
    for (size_t i = 0; i < mask->n_own; i++)
        for (struct sl_span rest = mask->own[i]; rest.len;) {
            size_t n = alnum_bytes(rest);
            if (n && sl_span_eq(sl_span(rest.ptr, n), word))
                return true;
            rest = sl_span_from(rest, n + 1);
        }
    return false;
}

/* "Http" of "HttpCode", "SQS" of "SQSQueue", "Not" of "NotFound". */
static size_t hump_bytes(struct sl_span word)
{
    size_t n = 1;
    while (n < word.len && is_upper(word.ptr[0]) && is_upper(word.ptr[n]))
        n++;
    if (n > 1)
        return n < word.len ? n - 1 : n;
    while (n < word.len && !is_upper(word.ptr[n]))
        n++;
    return n;
}

/* Marks the word, or those humps of a name like PutItemInput that are plain. False when all of it is. */
static bool mark_word(struct work *w, size_t at, size_t len)
{
    struct sl_span word = sl_span(w->text.ptr + at, len);
    bool whole = sl_mask_is_plain(word) || is_own(w->mask, word), others = false;
    for (size_t n; word.len; word = sl_span_from(word, n), at += n) {
        n = whole ? word.len : hump_bytes(word);
        bool plain = whole || sl_mask_is_plain(sl_span(word.ptr, n));
        memset(w->plain + at, plain, n);
        others = others || !plain;
    }
    return others;
}

/* False when all words are plain. */
static bool find_plain(struct work *w)
{
    bool others = false;
    for (size_t i = 0, n; i < w->text.len; i += n ? n : 1) {
        n = alnum_bytes(sl_span_from(w->text, i));
        others = (n ? mark_word(w, i, n) : !sl_mask_is_gap(w->text.ptr[i])) || others;
    }
    return others;
}

/* ---- secrets ---- */

static uint32_t four(const char *p)
{
    uint32_t gram;
    memcpy(&gram, p, sizeof(gram));
    return gram;
}

static size_t slot_of(uint32_t gram)
{
    return gram * 2654435761u >> 22;
}

/* Where each run of 4 bytes of a form stands. */
struct places {
    uint16_t head[1024], next[SL_MASK_TEXT_BYTES]; /* plus one; 0 ends a chain */
};

static void index_form(struct places *places, const struct sl_mask_form *form)
{
    memset(places->head, 0, sizeof(places->head));
    for (size_t i = 0; i + GRAM_BYTES <= form->len; i++) {
        uint16_t *head = &places->head[slot_of(four(form->text + i))];
        places->next[i] = *head;
        *head = (uint16_t)(i + 1);
    }
}

static void hide(struct work *w, const struct sl_mask_form *form, size_t at, size_t n)
{
    memset(w->hidden + form->begin[at], 1, (size_t)(form->end[at + n - 1] - form->begin[at]));
}

/* What is common to the secret from `s` on and to the form from `t` on, when it is the whole of it. */
static void hide_common(struct work *w, const struct sl_mask_form *form, struct sl_span secret, size_t s,
                        size_t t)
{
    if (s && t && secret.ptr[s - 1] == form->text[t - 1])
        return; /* found from its beginning */
    size_t n = 0;
    while (s + n < secret.len && t + n < form->len && secret.ptr[s + n] == form->text[t + n])
        n++;
    bool at_cut = w->is_cut && t + n == form->len;
    if (n >= (secret.len < RUN_BYTES ? secret.len : RUN_BYTES) || (at_cut && n >= GRAM_BYTES))
        hide(w, form, t, n);
}

static void hide_secrets(struct work *w, const struct sl_mask_form *form)
{
    struct places *places = sl_arena_alloc(w->arena, sizeof(*places));
    index_form(places, form);
    for (size_t i = 0; i < w->mask->n_secrets; i++) {
        struct sl_span secret = w->mask->secrets[i];
        for (size_t s = 0; s + GRAM_BYTES <= secret.len; s++) {
            uint32_t gram = four(secret.ptr + s);
            for (size_t at = places->head[slot_of(gram)]; at; at = places->next[at - 1])
                if (four(form->text + at - 1) == gram)
                    hide_common(w, form, secret, s, at - 1);
        }
    }
}

/* ---- the table of the text's runs ---- */

static uint64_t mixed(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
}

static void add_gram(struct work *w, uint64_t key, size_t begin, size_t end)
{
    bool others = false, plain = false;
    for (size_t i = begin; i < end; i++) {
        plain = plain || w->plain[i];
        others = others || (!w->plain[i] && is_wordy(w->text.ptr[i]));
    }
    if (!others && (plain || end - begin < GRAM_BYTES))
        return;
    struct gram *gram = sl_arena_alloc(w->arena, sizeof(*gram));
    uint64_t hash = mixed(key);
    struct gram **slot = &w->slots[hash % TABLE_SLOTS];
    *gram = (struct gram){*slot, key, (uint16_t)begin, (uint16_t)end, !plain};
    *slot = gram;
    w->filter[(hash >> 16) % FILTER_BITS / 64] |= (uint64_t)1 << (hash >> 16) % 64;
    w->any_grams = true;
}

/* A word of 1 to 3 bytes, apart from all runs of 4. */
static uint64_t short_key(struct sl_span word)
{
    uint64_t key = (uint64_t)word.len << 32;
    for (size_t i = 0; i < word.len; i++)
        key |= (uint64_t)(unsigned char)word.ptr[i] << 8 * i;
    return key;
}

static size_t word_bytes(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && !sl_mask_is_gap(text[n]))
        n++;
    return n;
}

/* A full stop is not part of the word. */
static size_t core_bytes(const char *word, size_t n)
{
    return n > 1 && word[n - 1] == '.' ? n - 1 : n;
}

static void add_form(struct work *w, const struct sl_mask_form *form)
{
    for (size_t i = 0; i + GRAM_BYTES <= form->len; i++)
        add_gram(w, four(form->text + i), form->begin[i], form->end[i + GRAM_BYTES - 1]);
    for (size_t i = 0, n; i < form->len && !form->is_base64; i += n ? n : 1) {
        n = word_bytes(form->text + i, form->len - i);
        size_t core = core_bytes(form->text + i, n);
        if (core && core < GRAM_BYTES)
            add_gram(w, short_key(sl_span(form->text + i, core)), form->begin[i], form->end[i + core - 1]);
    }
}

static void hide_gram(struct work *w, const struct gram *gram)
{
    for (size_t i = gram->begin; i < gram->end; i++)
        if (!w->plain[i] && (gram->is_bare || is_wordy(w->text.ptr[i])))
            w->hidden[i] = true;
}

/* What was found leaves the table: each of its runs costs once. */
static void look_up(struct work *w, uint64_t key)
{
    uint64_t hash = mixed(key);
    if (!(w->filter[(hash >> 16) % FILTER_BITS / 64] >> (hash >> 16) % 64 & 1))
        return;
    for (struct gram **p = &w->slots[hash % TABLE_SLOTS]; *p;) {
        if ((*p)->key != key) {
            p = &(*p)->next;
            continue;
        }
        hide_gram(w, *p);
        *p = (*p)->next;
    }
}

/* ---- what was carried ---- */

/* A piece of it in one form. Pieces overlap, so that no run is lost between two. */
static void read_piece(void *arg, struct sl_span piece)
{
    struct work *w = arg;
    for (size_t i = 0; i + GRAM_BYTES <= piece.len; i++)
        look_up(w, four(piece.ptr + i));
    for (size_t i = 0, n; i < piece.len; i += n ? n : 1) {
        n = word_bytes(piece.ptr + i, piece.len - i);
        size_t core = core_bytes(piece.ptr + i, n);
        if (core && core < GRAM_BYTES)
            look_up(w, short_key(sl_span(piece.ptr + i, core)));
    }
}

static void hide_others(struct work *w)
{
    for (size_t i = 0; i < w->text.len; i++)
        w->hidden[i] = w->hidden[i] || (!w->plain[i] && is_wordy(w->text.ptr[i]));
}

static void hide_carried(struct work *w)
{
    const struct sl_mask *mask = w->mask;
    size_t bytes = mask->path.len;
    for (size_t i = 0; i < mask->n_carried; i++)
        bytes += mask->carried[i].len;
    if (mask->is_closed || bytes > SL_MASK_CARRIED_BYTES) {
        hide_others(w);
        return;
    }
    sl_mask_forms_of(&mask->path, 1, read_piece, w);
    sl_mask_forms_of(mask->carried, mask->n_carried, read_piece, w);
}

/* ---- all of it ---- */

static void read_form(void *arg, const struct sl_mask_form *form)
{
    struct work *w = arg;
    hide_secrets(w, form);
    if (!form->is_squeezed)
        add_form(w, form);
}

/* Fills in `hidden`. */
static void search(struct work *w)
{
    bool others = find_plain(w);
    w->hidden = sl_arena_zalloc(w->arena, w->text.len + 1);
    sl_mask_forms(w->text, w->arena, read_form, w);
    if (others && w->any_grams)
        hide_carried(w);
}

static struct work *open_work(const struct sl_mask *mask, struct sl_span text)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    sl_arena_keep_secret(arena); /* a server may have repeated some */
    struct work *w = sl_arena_zalloc(arena, sizeof(*w));
    w->mask = mask;
    w->arena = arena;
    w->is_cut = text.len > SL_MASK_TEXT_BYTES;
    w->text = sl_span(text.ptr, w->is_cut ? SL_MASK_TEXT_BYTES : text.len);
    w->plain = sl_arena_zalloc(arena, w->text.len + 1);
    search(w);
    return w;
}

static bool any_hidden(const struct work *w, size_t from, size_t n)
{
    return n && memchr(w->hidden + from, 1, n) != NULL;
}

size_t sl_mask_show(const struct sl_mask *mask, struct sl_span text, char *out, size_t room)
{
    struct work *w = open_work(mask, text);
    char *shown = sl_arena_alloc(w->arena, w->text.len * 3 + 1);
    size_t len = 0;
    bool dots = false;
    for (size_t i = 0, n; i < w->text.len; i += n) {
        size_t word = word_bytes(w->text.ptr + i, w->text.len - i);
        n = word ? core_bytes(w->text.ptr + i, word) : 1;
        bool hidden = any_hidden(w, i, n);
        if (hidden && !dots)
            memcpy(shown + len, "...", 3);
        else if (!hidden)
            memcpy(shown + len, w->text.ptr + i, n);
        len += hidden ? (dots ? 0 : 3) : n;
        dots = hidden;
    }
    len = sl_clean(sl_span(shown, len), out, room);
    sl_arena_destroy(w->arena);
    return len;
}

bool sl_mask_allows(const struct sl_mask *mask, struct sl_span text)
{
    struct work *w = open_work(mask, text);
    bool allows = !w->is_cut && !any_hidden(w, 0, w->text.len);
    sl_arena_destroy(w->arena);
    return allows;
}
