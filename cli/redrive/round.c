/* Waves of letters, and their loads for the sandboxes. */
#include "cli/redrive/round.h"

#include "base/span.h"
#include "cli/redrive/letter.h"
#include "cli/redrive/names.h"

#include <stdlib.h>
#include <string.h>

#define WAVE_BYTES ((size_t)16 * 1024 * 1024) /* of records, or one letter */

struct wave {
    const struct sl_round *round;
    struct sl_arena *arena;
    struct sl_letter **letters; /* of the page, in their order */
    size_t n_letters;
    struct sl_letter **chosen;
    size_t n;
    size_t bytes;
    struct sl_names ids, groups; /* of what is in the wave already: identifiers of records, FIFO groups */
};

/* ---- choosing ---- */

/* A message of a FIFO group that ends what comes after it. */
static bool holds_back(const struct sl_round *round, const struct sl_letter *letter)
{
    enum sl_mail_outcome is = letter->outcome;
    return is == SL_MAIL_FAILED || is == SL_MAIL_HELD_BACK ||
           (is == SL_MAIL_UNREADABLE && !round->skips_unreadable);
}

/* Reads what the letter points to. False: it has ended, or cannot be run now. */
static bool make_ready(struct wave *w, struct sl_letter *letter)
{
    struct sl_span event;
    struct sl_error why = SL_NO_ERROR;
    if (letter->dead.kind != SL_DEAD_LETTER_POINTER || letter->records)
        return true; /* (a letter that was set aside is decoded by its route's function) */
    enum sl_status is = sl_pointer_fetch(w->round->pointer, &letter->dead, w->arena, &event, &why);
    w->round->keep(w->round->keep_arg);
    if (is == SL_OK) {
        sl_letter_decode(letter, event, w->arena);
        return letter->outcome == SL_MAIL_WAITING;
    }
    if (*w->round->stop)
        return false;
    /* Also a refusal for good is of this stream alone: the next message may be of another. */
    sl_letter_end(letter, SL_MAIL_FAILED, sl_arena_printf(w->arena, "%s", why.code),
                  sl_arena_printf(w->arena, "%s", why.text));
    return false;
}

/* An answer names records by their identifiers, so no two of a wave are the same. (Records of one letter may
 * be: they fail together.) */
static bool is_in_wave(const struct wave *w, const struct sl_letter *letter)
{
    bool is_in = false;
    for (size_t i = 0; i < letter->n && !is_in; i++)
        is_in = sl_names_has(&w->ids, letter->records[i].id);
    return is_in;
}

static void join(struct wave *w, struct sl_letter *letter)
{
    for (size_t i = 0; i < letter->n; i++) {
        sl_names_add(&w->ids, letter->records[i].id, w->arena);
        w->bytes += letter->records[i].text.len;
    }
    w->chosen[w->n++] = letter;
}

/* Those that can go together now. What cannot waits for the next wave; in its group, all behind it. */
static void choose(struct wave *w)
{
    struct sl_names held = {0};
    w->ids = w->groups = (struct sl_names){0};
    w->n = w->bytes = 0;
    for (size_t i = 0; i < w->n_letters && !*w->round->stop && w->bytes < WAVE_BYTES; i++) {
        struct sl_letter *letter = w->letters[i];
        struct sl_span group = sl_span_str(w->round->is_fifo ? letter->mail->group : NULL);
        bool is_waiting = letter->outcome == SL_MAIL_WAITING;
        if (is_waiting && group.len && sl_names_has(&held, group))
            sl_letter_end(letter, SL_MAIL_HELD_BACK, "HeldBack", "");
        else if (is_waiting && !(group.len && sl_names_has(&w->groups, group)) && make_ready(w, letter) &&
                 !is_in_wave(w, letter))
            join(w, letter);
        if (group.len && holds_back(w->round, letter))
            sl_names_add(&held, group, w->arena);
        if (group.len && letter->outcome == SL_MAIL_WAITING)
            sl_names_add(&w->groups, group, w->arena);
    }
}

/* ---- running ---- */

static const char *route_of(const struct sl_round *round, const struct sl_letter *letter)
{
    bool is_of_route =
        letter->dead.kind == SL_DEAD_LETTER_PARKED || letter->dead.kind == SL_DEAD_LETTER_ASIDE;
    return is_of_route ? letter->dead.route : round->route;
}

static int64_t epoch_of(const struct sl_letter *letter)
{
    return letter->dead.kind == SL_DEAD_LETTER_PARKED ? letter->dead.epoch : -1;
}

static bool go_together(const struct sl_round *round, const struct sl_letter *a, const struct sl_letter *b)
{
    const char *x = route_of(round, a), *y = route_of(round, b);
    bool is_route = x && y ? strcmp(x, y) == 0 : x == y;
    return is_route && epoch_of(a) == epoch_of(b) && a->is_kinesis == b->is_kinesis &&
           sl_span_eq(sl_crew_place(a->dead.stream_arn), sl_crew_place(b->dead.stream_arn));
}

/* The configuration has no such route: these fail, and the others go on. */
static void fail_all(const struct sl_crew_load *load, const struct sl_error *why, struct sl_arena *arena)
{
    for (size_t i = 0; i < load->n; i++)
        sl_letter_end(load->letters[i], SL_MAIL_FAILED, sl_arena_printf(arena, "%s", why->code),
                      sl_arena_printf(arena, "%s", why->text));
}

static enum sl_status end_load(const struct sl_crew_load *load, enum sl_status status,
                               const struct sl_error *why, struct sl_arena *arena, struct sl_error *error)
{
    if (status == SL_REJECT) {
        fail_all(load, why, arena);
        return SL_OK;
    }
    return status == SL_OK ? SL_OK : sl_fail(error, status, why->code, "%s", why->text);
}

/* Each load of the wave, in the order of its first letter. */
static enum sl_status run_wave(struct wave *w, struct sl_error *error)
{
    const struct sl_round *round = w->round;
    struct sl_letter **together = sl_arena_alloc(w->arena, (w->n + 1) * sizeof(*together));
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < w->n && status == SL_OK && !*round->stop; i++) {
        if (!w->chosen[i])
            continue;
        struct sl_letter *first = w->chosen[i];
        struct sl_error why = SL_NO_ERROR;
        if (first->dead.kind == SL_DEAD_LETTER_ASIDE) {
            status = sl_crew_apply(round->crew, first, w->arena, &why);
            const struct sl_crew_load alone = {.letters = &first, .n = 1};
            status = end_load(&alone, status, &why, w->arena, error);
            continue;
        }
        struct sl_crew_load load = {.route = route_of(round, first),
                                    .epoch = epoch_of(first),
                                    .stream_arn = first->dead.stream_arn,
                                    .is_kinesis = first->is_kinesis,
                                    .keeps_order = round->is_fifo,
                                    .letters = together};
        for (size_t k = i; k < w->n; k++)
            if (w->chosen[k] && w->chosen[k]->dead.kind != SL_DEAD_LETTER_ASIDE &&
                go_together(round, first, w->chosen[k])) {
                together[load.n++] = w->chosen[k];
                w->chosen[k] = NULL;
            }
        status = sl_crew_run(round->crew, &load, w->arena, &why);
        status = end_load(&load, status, &why, w->arena, error);
    }
    return status;
}

enum sl_status sl_round_run(const struct sl_round *round, struct sl_mail_page *page, struct sl_arena *arena,
                            struct sl_error *error)
{
    struct wave w = {.round = round, .arena = arena};
    for (size_t i = 0; i < page->n; i++)
        w.n_letters += page->list[i].n;
    w.letters = sl_arena_alloc(arena, (w.n_letters + 1) * sizeof(*w.letters));
    w.chosen = sl_arena_alloc(arena, (w.n_letters + 1) * sizeof(*w.chosen));
    size_t at = 0;
    for (size_t i = 0; i < page->n; i++)
        for (size_t k = 0; k < page->list[i].n; k++)
            w.letters[at++] = &page->list[i].letters[k];
    enum sl_status status = SL_OK;
    do {
        choose(&w);
        if (w.n)
            status = run_wave(&w, error);
    } while (status == SL_OK && w.n && !*round->stop);
    return status;
}
