/* Lines, counts and the sum. Every text in them is somebody else's, so it is made clean first. */
#include "cli/redrive/tally.h"

#include "base/array.h"
#include "base/clean.h"
#include "base/span.h"
#include "cli/redrive/picker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 4096

static const char *const names[SL_MAIL_OUTCOMES] = {"not begun", "done",      "failed", "unreadable",
                                                    "unmatched", "held back", "listed"};

/* ---- counting ---- */

/* The worst letter speaks for its message: it stays because of it. */
static enum sl_mail_outcome outcome_of(const struct sl_mail *mail)
{
    static const enum sl_mail_outcome worst_first[] = {SL_MAIL_FAILED,     SL_MAIL_HELD_BACK, SL_MAIL_WAITING,
                                                       SL_MAIL_UNREADABLE, SL_MAIL_UNMATCHED, SL_MAIL_LISTED};
    for (size_t k = 0; k < SL_COUNT(worst_first); k++)
        for (size_t i = 0; i < mail->n; i++)
            if (mail->letters[i].outcome == worst_first[k])
                return worst_first[k];
    return SL_MAIL_DONE;
}

static void count_code(struct sl_redrive_tally *tally, const char *code, const char *parked)
{
    char name[SL_TALLY_CODE_BYTES];
    size_t i = 0;
    sl_clean(sl_span_str(code[0] ? code : "-"), name, sizeof(name));
    while (i < tally->n_codes && strcmp(tally->codes[i].name, name) != 0)
        i++;
    if (i == SL_TALLY_CODES) {
        tally->others++;
        return;
    }
    tally->n_codes += i == tally->n_codes;
    memcpy(tally->codes[i].name, name, sizeof(name));
    if (parked && !tally->codes[i].parked[0])
        sl_clean(sl_span_str(parked), tally->codes[i].parked, SL_TALLY_CODE_BYTES);
    tally->codes[i].n++;
}

static void count(struct sl_redrive_tally *tally, const struct sl_mail *mail)
{
    tally->messages[outcome_of(mail)]++;
    tally->removed += mail->removal == SL_MAIL_REMOVED;
    tally->not_removed += mail->removal == SL_MAIL_NOT_REMOVED;
    for (size_t i = 0; i < mail->n; i++) {
        const struct sl_letter *letter = &mail->letters[i];
        if (letter->outcome == SL_MAIL_FAILED)
            count_code(tally, letter->code, letter->dead.code);
        else if (letter->outcome == SL_MAIL_UNREADABLE)
            count_code(tally, letter->code, NULL);
        else if (letter->outcome == SL_MAIL_LISTED)
            count_code(tally, letter->dead.code, letter->dead.code);
    }
}

/* ---- lines ---- */

static void add_text(const char *label, const char *text)
{
    char clean[LINE_BYTES];
    if (!text[0])
        return;
    sl_clean(sl_span_str(text), clean, sizeof(clean));
    printf("  %s%s", label, clean);
}

static const char *route_of(const struct sl_letter *letter)
{
    return letter->dead.route[0] ? letter->dead.route : sl_picker_kind(letter);
}

static void add_age(const struct sl_letter *letter, int64_t now_ms)
{
    int64_t since_ms = letter->dead.time_ms ? letter->dead.time_ms : letter->mail->sent_ms;
    int64_t s = since_ms ? (now_ms - since_ms) / 1000 : -1;
    if (s < 0)
        printf("  age=-");
    else if (s < 3600)
        printf("  age=%lldm", (long long)s / 60);
    else if (s < 2 * 86400)
        printf("  age=%lldh", (long long)s / 3600);
    else
        printf("  age=%lldd", (long long)s / 86400);
}

static size_t records_of(const struct sl_letter *letter)
{
    return letter->n ? letter->n : letter->dead.records;
}

static void print_letter(const struct sl_redrive_tally *tally, const struct sl_letter *letter, int64_t now_ms)
{
    const struct sl_mail *mail = letter->mail;
    bool is_bad = letter->outcome == SL_MAIL_FAILED || letter->outcome == SL_MAIL_UNREADABLE;
    printf("%-10s", names[letter->outcome]);
    add_text("", letter->id);
    if (letter->dead.kind != SL_DEAD_LETTER_UNREADABLE)
        add_text("route=", route_of(letter));
    if (tally->is_dry && !is_bad) {
        add_text("code=", letter->dead.code);
        add_age(letter, now_ms);
    } else if (is_bad) {
        add_text("code=", letter->code);
    }
    if (letter->dead.kind != SL_DEAD_LETTER_UNREADABLE)
        add_text("key=", letter->key);
    if (records_of(letter) > 1)
        printf("  records=%zu", records_of(letter));
    if (mail->removal == SL_MAIL_REMOVED)
        printf("  removed");
    if (mail->removal == SL_MAIL_NOT_REMOVED)
        add_text("not removed: ", mail->removal_code ? mail->removal_code : "Unknown");
    if (is_bad)
        add_text("", letter->text);
    putchar('\n');
}

void sl_redrive_tally_add(struct sl_redrive_tally *tally, const struct sl_mail_page *page, int64_t now_ms)
{
    if (tally->shows_progress)
        fprintf(stderr, "\r\x1b[K");
    for (size_t i = 0; i < page->n; i++) {
        count(tally, &page->list[i]);
        for (size_t k = 0; k < page->list[i].n; k++)
            if (page->list[i].letters[k].outcome != SL_MAIL_UNMATCHED)
                print_letter(tally, &page->list[i].letters[k], now_ms);
    }
    fflush(stdout);
    if (!tally->shows_progress)
        return;
    uint64_t seen = 0;
    for (size_t i = 0; i < SL_MAIL_OUTCOMES; i++)
        seen += tally->messages[i];
    fprintf(stderr, "\r\x1b[K%llu messages: %llu done, %llu failed", (unsigned long long)seen,
            (unsigned long long)tally->messages[SL_MAIL_DONE],
            (unsigned long long)tally->messages[SL_MAIL_FAILED]);
}

/* ---- the sum ---- */

static void print_outcomes(const struct sl_redrive_tally *tally)
{
    for (size_t i = 0; i < SL_MAIL_OUTCOMES; i++)
        if (tally->messages[i])
            printf("%-10s %8llu%s\n", names[i], (unsigned long long)tally->messages[i],
                   i == SL_MAIL_UNMATCHED ? "   not asked for" : "");
    if (tally->removed)
        printf("%-10s %8llu\n", "removed", (unsigned long long)tally->removed);
    if (tally->not_removed)
        printf("%-10s %8llu   done, and still there: they will be handled again\n", "left",
               (unsigned long long)tally->not_removed);
}

static int by_number(const void *x, const void *y)
{
    const struct sl_redrive_tally_code *a = x, *b = y;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->name, b->name);
}

static void print_codes(struct sl_redrive_tally *tally)
{
    qsort(tally->codes, tally->n_codes, sizeof(*tally->codes), by_number);
    for (size_t i = 0; i < tally->n_codes; i++)
        printf("code       %8llu   %s\n", (unsigned long long)tally->codes[i].n, tally->codes[i].name);
    if (tally->others)
        printf("code       %8llu   others\n", (unsigned long long)tally->others);
}

/* A word of a shell. */
static void print_quoted(const char *flag, const char *text)
{
    printf(" %s'", flag);
    for (const char *p = text; *p; p++)
        if (*p == '\'')
            printf("'\\''");
        else
            putchar(*p);
    putchar('\'');
}

static void print_command(const struct sl_redrive_tally *tally, const struct sl_redrive_tally_next *next,
                          const char *more)
{
    const char *code = NULL;
    for (size_t i = 0; i < tally->n_codes && !code; i++)
        if (tally->codes[i].parked[0])
            code = tally->codes[i].parked;
    printf("sluice redrive");
    print_quoted("--config ", next->config);
    printf("%s", more);
    if (code)
        print_quoted("--match code=", code);
    print_quoted("", next->operand);
    putchar('\n');
}

static void print_next(const struct sl_redrive_tally *tally, const struct sl_redrive_tally_next *next)
{
    const char *removing = next->could_remove ? " --delete-done" : "";
    if (tally->is_dry && tally->messages[SL_MAIL_LISTED]) {
        printf("next: correct the cause of one code, then: ");
        print_command(tally, next, removing);
    } else if (tally->messages[SL_MAIL_FAILED]) {
        printf("next: correct what the log says of the first code, then: ");
        print_command(tally, next, removing);
    } else if (tally->messages[SL_MAIL_WAITING] || tally->messages[SL_MAIL_HELD_BACK]) {
        printf("next: run the same command again\n");
    } else if (next->could_remove && tally->messages[SL_MAIL_DONE] > tally->removed) {
        printf("next: the same command with --delete-done handles them once more, and removes each that is "
               "done\n");
    }
}

void sl_redrive_tally_print(struct sl_redrive_tally *tally, const struct sl_redrive_tally_next *next)
{
    uint64_t all = 0;
    for (size_t i = 0; i < SL_MAIL_OUTCOMES; i++)
        all += i == SL_MAIL_UNMATCHED ? 0 : tally->messages[i];
    uint64_t done = tally->messages[SL_MAIL_DONE];
    if (tally->shows_progress)
        fprintf(stderr, "\r\x1b[K");
    print_codes(tally);
    print_outcomes(tally);
    if (all == 0)
        printf("there is no message%s\n", tally->messages[SL_MAIL_UNMATCHED] ? " that matches" : "");
    else if (!tally->is_dry)
        printf("%llu of %llu messages are done%s\n", (unsigned long long)done, (unsigned long long)all,
               done == all && tally->removed < done ? ": they can be deleted" : "");
    print_next(tally, next);
}
