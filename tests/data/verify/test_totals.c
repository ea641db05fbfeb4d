/* Totals against their ledgers: over random configurations and histories they agree; each damage is found,
 * and only that; and what moves while it is read is never called a difference. The rows are the real
 * handler's. */
#include "data/verify/totals.h"

#include "data/verify/totals_judge.h"
#include "data/verify/totals_part.h"

#include "handlers/pipeline/route.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{'on_failure':'report','report_batch_item_failures':true,'routes':[%s]}"
#define TO     "'to':'sqlite:${DIR}/db?table=totals'"

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

/* ---- the world: totals behind a port that the test sees through ---- */

struct seen_through {
    struct sl_table_port port; /* first */
    struct sl_table_port *real;
};

static struct stage *the;
static struct seen_through ports[4];
static size_t n_ports;

static size_t n_scans;      /* so far */
static size_t failing_scan; /* counted from 1; 0: none */
static struct sl_result failure;
static void (*before_scan)(size_t n);
static bool pages_of_one, goes_round;
static size_t n_made; /* rows that the totals' table has beside those that are there */
static size_t wrong;  /* the total of this one is 1, of the others 0 */

/* All of them, in the page. */
static void make_rows(struct sl_table_page *page, struct sl_arena *arena)
{
    struct sl_span *items = sl_arena_alloc(arena, (n_made + page->n) * sizeof(*items));
    for (size_t i = 0; i < n_made; i++)
        items[i] = sl_span_str(
            sl_arena_printf(arena, "{\"PK\":{\"S\":\"k%zu\"},\"n\":{\"N\":\"%d\"}}", i, i == wrong));
    for (size_t i = 0; i < page->n; i++)
        items[n_made + i] = page->items[i];
    page->items = items;
    page->n += n_made;
}

static void scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                 struct sl_table_page *pages, const struct sl_call *call)
{
    struct sl_table_port *real = ((struct seen_through *)port)->real;
    struct sl_table_scan own[8];
    n_scans++;
    if (before_scan)
        before_scan(n_scans);
    memcpy(own, scans, n * sizeof(*own));
    for (size_t i = 0; i < n; i++) {
        assert_true(scans[i].is_consistent);
        own[i].limit = pages_of_one;
    }
    real->scan(real, own, n, pages, call);
    if (n_made && !scans[0].table.ptr)
        make_rows(&pages[0], call->arena);
    for (size_t i = 0; i < n && goes_round; i++)
        pages[i].next = SL_LIT("{\"PK\":{\"S\":\"again\"}}");
    if (n_scans == failing_scan)
        pages[n - 1] = (struct sl_table_page){.result = failure};
}

static void watch_ports(void)
{
    n_ports = 0;
    for (size_t i = 0; i < the->p->n; i++) {
        struct sl_option_set *set = &the->p->routes[i].options;
        for (size_t k = 0; k < set->n; k++)
            if (set->values[k].is_set && set->values[k].table) {
                struct seen_through *p = &ports[n_ports++];
                p->real = set->values[k].table;
                p->port = *p->real;
                p->port.scan = scan;
                set->values[k].table = &p->port;
            }
    }
}

/* Before the pipeline is closed. */
static void forget_ports(void)
{
    size_t n = 0;
    for (size_t i = 0; i < the->p->n; i++) {
        struct sl_option_set *set = &the->p->routes[i].options;
        for (size_t k = 0; k < set->n; k++)
            if (set->values[k].is_set && set->values[k].table)
                set->values[k].table = ports[n++].real;
    }
}

static void open_world(const char *routes)
{
    the = stage_new(json_printf(CONFIG, routes), NULL);
    n_scans = failing_scan = n_made = 0;
    before_scan = NULL;
    pages_of_one = goes_round = false;
}

static void close_world(void)
{
    stage_destroy(the);
}

/* ---- what is found ---- */

static char lines[20000];
static struct sl_totals_counts counts;
static struct sl_error error;
static size_t stops_at; /* that question; 0: never */
static size_t asked;

static void found(void *arg, struct sl_span line)
{
    (void)arg;
    size_t n = strlen(lines);
    snprintf(lines + n, sizeof(lines) - n, "%.*s", SL_ARG(line));
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return ++asked == stops_at;
}

/* ---- the same by parts: what many scans add up apart, and others judge ---- */

struct parts {
    struct sl_totals_target *t;
    struct sl_arena *arena, *page;
    struct sl_buffer key, line;
    struct sl_buffer objects[3][64]; /* of the first scan of the ledgers, of the totals, of the second one */
    size_t n[3];
    struct sl_buffer rest[5]; /* of a share of the groups */
    struct sl_totals_counts counts;
    char lines[20000];
};

#define SHARES_OF 3 /* judgements */

static void found_apart(void *arg, struct sl_span line)
{
    struct parts *p = arg;
    size_t n = strlen(p->lines);
    snprintf(p->lines + n, sizeof(p->lines) - n, "%.*s", SL_ARG(line));
}

/* Every page becomes an object of its own. */
static void scan_apart(struct parts *p, int which, size_t table)
{
    bool is_totals = which == 1;
    const struct sl_call call = {.arena = p->arena, .deadline_ms = INT64_MAX};
    for (uint32_t segment = 0; segment < 3; segment++)
        for (struct sl_span after = {0};;) {
            struct sl_totals_sums sums;
            struct sl_totals_rows rows = {.t = p->t,
                                          .sums = &sums,
                                          .scan = is_totals ? SL_TOTALS_TOTAL : SL_TOTALS_FIRST,
                                          .is_apart = true,
                                          .arena = p->page,
                                          .key = &p->key};
            const struct sl_table_scan scan = {.table = is_totals ? sl_span(NULL, 0) : p->t->tables[table],
                                               .segment = segment,
                                               .of = 3,
                                               .after = after,
                                               .is_consistent = true};
            struct sl_table_page page;
            struct sl_buffer *object = &p->objects[which][p->n[which]++];
            assert_true(p->n[which] < 64);
            p->t->port->scan(p->t->port, &scan, 1, &page, &call);
            assert_int_equal(page.result.status, SL_OK);
            sl_totals_sums_init(&sums, 4000, 0, 1);
            sl_totals_take_page(&rows, table, &page);
            sl_buffer_init(object, (size_t)4 * 1024 * 1024);
            const struct sl_part_head head = {.before = SL_LIT("x"), .digest = rows.digest};
            assert_int_equal(sl_totals_part_write(&sums, rows.scan, &head, object, &error), SL_OK);
            sl_totals_sums_clean_up(&sums);
            after = page.next;
            if (!after.ptr)
                break;
        }
}

static uint64_t take_apart(struct parts *p, struct sl_totals_rows *rows, size_t share, int which,
                           enum sl_totals_scan scan)
{
    uint64_t digest = 0;
    rows->scan = scan;
    for (size_t i = 0; i < p->n[which]; i++) {
        struct sl_span text = sl_buffer_span(&p->objects[which][i]);
        struct sl_part_head head;
        size_t from = SL_PART_SHARES * share / SHARES_OF, to = SL_PART_SHARES * (share + 1) / SHARES_OF;
        assert_int_equal(sl_part_head_read(sl_span(text.ptr, SL_PART_HEAD_BYTES), p->arena, &head, &error),
                         SL_OK);
        assert_true(sl_span_is(head.before, "x"));
        uint64_t begin = from ? head.ends[from - 1] : 0;
        assert_int_equal(head.ends[SL_PART_SHARES - 1], text.len - SL_PART_HEAD_BYTES);
        assert_int_equal(sl_totals_part_take(rows,
                                             sl_span(text.ptr + SL_PART_HEAD_BYTES + begin,
                                                     (size_t)(head.ends[to - 1] - begin)),
                                             &error),
                         SL_OK);
        digest += head.digest;
    }
    return digest;
}

static size_t judge_apart(struct parts *p, size_t share, unsigned round)
{
    struct sl_totals_sums sums;
    struct sl_totals_rows rows = {.t = p->t, .sums = &sums, .arena = p->page, .key = &p->key};
    struct sl_totals_judge judge = {.t = p->t,
                                    .sums = &sums,
                                    .counts = &p->counts,
                                    .arena = p->page,
                                    .line = &p->line,
                                    .found = found_apart,
                                    .arg = p};
    sl_totals_sums_init(&sums, 4000, 0, 1);
    if (round > 1) {
        assert_int_equal(sl_totals_rest_take(&rows, sl_buffer_span(&p->rest[share]), &error), SL_OK);
        sums.is_closed = true;
    }
    uint64_t first = take_apart(p, &rows, share, 0, SL_TOTALS_FIRST);
    (void)take_apart(p, &rows, share, 1, SL_TOTALS_TOTAL);
    judge.has_moved = take_apart(p, &rows, share, 2, SL_TOTALS_SECOND) != first;
    size_t left = sl_totals_judge_round(&judge);
    sl_buffer_reset(&p->rest[share]);
    assert_int_equal(sl_totals_rest_write(&sums, &p->rest[share], &error), SL_OK);
    if (round == SL_TOTALS_ROUNDS)
        sl_totals_judge_rest(&judge);
    sl_totals_sums_clean_up(&sums);
    return left;
}

static void forget_objects(struct parts *p, int which)
{
    while (p->n[which])
        sl_buffer_clean_up(&p->objects[which][--p->n[which]]);
}

static void scan_ledgers_apart(struct parts *p, int which)
{
    for (size_t i = 0; i < p->t->n_tables; i++)
        scan_apart(p, which, i);
}

static void verify_target_apart(struct parts *p)
{
    size_t left = 1;
    for (size_t i = 0; i < SHARES_OF; i++)
        sl_buffer_init(&p->rest[i], (size_t)1024 * 1024);
    scan_ledgers_apart(p, 0);
    for (unsigned round = 1; round <= SL_TOTALS_ROUNDS && left > 0; round++) {
        left = 0;
        scan_apart(p, 1, 0);
        scan_ledgers_apart(p, 2);
        for (size_t share = 0; share < SHARES_OF; share++)
            left += judge_apart(p, share, round);
        forget_objects(p, 0);
        forget_objects(p, 1);
        memcpy(p->objects[0], p->objects[2], sizeof(p->objects[0]));
        p->n[0] = p->n[2];
        p->n[2] = 0;
    }
    forget_objects(p, 0);
    for (size_t i = 0; i < SHARES_OF; i++)
        sl_buffer_clean_up(&p->rest[i]);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_lines(char *text)
{
    char *list[200], copy[sizeof(lines)];
    size_t n = 0, at = 0;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *line = copy, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        list[n++] = line;
    }
    qsort(list, n, sizeof(*list), by_text);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(copy) - at, "%s\n", list[i]);
}

/* Finds what one machine has found. */
static void assert_same_apart(const bool *is_chosen)
{
    static struct parts p;
    struct sl_totals_target *targets;
    p = (struct parts){.arena = sl_arena_new(4096), .page = sl_arena_new(4096)};
    sl_buffer_init(&p.key, (size_t)64 * 1024);
    sl_buffer_init(&p.line, (size_t)64 * 1024);
    size_t n = sl_totals_find(the->p, is_chosen, p.arena, &targets);
    for (size_t i = 0; i < n; i++)
        if (targets[i].is_chosen) {
            p.t = &targets[i];
            verify_target_apart(&p);
        }
    sort_lines(lines);
    sort_lines(p.lines);
    assert_string_equal(p.lines, lines);
    assert_int_equal(p.counts.equal, counts.equal);
    assert_int_equal(p.counts.different, counts.different);
    assert_int_equal(p.counts.unsettled, counts.unsettled);
    sl_buffer_clean_up(&p.key);
    sl_buffer_clean_up(&p.line);
    sl_arena_destroy(p.page);
    sl_arena_destroy(p.arena);
}

#define GROUPS 4000 /* so that few groups are too many */

static enum sl_status verify_chosen(const bool *is_chosen)
{
    const struct sl_totals_options options = {.groups = GROUPS,
                                              .pipeline = the->p,
                                              .sinks = &the->sinks,
                                              .is_chosen = is_chosen,
                                              .found = found,
                                              .is_stopped = is_stopped};
    counts = (struct sl_totals_counts){.equal = 0};
    sl_error_clear(&error);
    lines[0] = '\0';
    n_scans = asked = 0;
    watch_ports();
    enum sl_status status = sl_totals_verify(&options, &counts, &error);
    size_t scans = n_scans;
    if (status == SL_OK && !before_scan && !n_made && !stops_at)
        assert_same_apart(is_chosen);
    forget_ports();
    n_scans = scans;
    return status;
}

static void assert_counts(uint64_t equal, uint64_t different, uint64_t unsettled)
{
    if (verify_chosen(NULL) != SL_OK)
        fail_msg("%s", error.text);
    if (counts.equal != equal || counts.different != different || counts.unsettled != unsettled)
        fail_msg("%llu equal, %llu different, %llu unsettled:\n%s", (unsigned long long)counts.equal,
                 (unsigned long long)counts.different, (unsigned long long)counts.unsettled, lines);
}

static void assert_line(const char *text)
{
    if (!strstr(lines, json(text)))
        fail_msg("no %s in\n%s", json(text), lines);
}

/* ---- changes ---- */

struct item {
    int group, n; /* group -1: it is not there */
};

static const char *image_of(const char *name, size_t id, const struct item *item)
{
    return item->group < 0 ? ""
                           : json_printf(",'%s':{'PK':{'S':'i%zu'},'g':{'S':'gé%d'},'n':{'N':'%d'}}", name,
                                         id, item->group, item->n);
}

static unsigned n_changes;

static void change(size_t id, struct item *item, struct item to)
{
    const char *event = item->group < 0 ? "INSERT" : to.group < 0 ? "REMOVE" : "MODIFY";
    if (item->group < 0 && to.group < 0)
        return;
    n_changes++;
    stage_deliver_all(
        the,
        json_printf("{'Records':[{'eventID':'e%u','eventName':'%s','eventSource':'aws:dynamodb','dynamodb':{"
                    "'Keys':{'PK':{'S':'i%zu'}}%s%s,'SequenceNumber':'1%020u','StreamViewType':"
                    "'NEW_AND_OLD_IMAGES'}}]}",
                    n_changes, event, id, image_of("NewImage", id, &to), image_of("OldImage", id, item),
                    n_changes));
    *item = to;
}

static void put(size_t id, int group, int n)
{
    struct item none = {.group = -1};
    change(id, &none, (struct item){group, n});
}

/* ---- they agree ---- */

#define LEDGER_BESIDE "'ledger':{'table':'ledger','key':'ID','name':'old'}"

static const char *const configurations[] = {
    /* one row of the totals' own table; a name that JSON escapes */
    "{'name':'a','handler':'aggregate'," TO ",'counters':[{'key':{'PK':'{g}'},'add':{'n':1,'sé':'{n}'}}]}",
    /* two routes on the same totals, each with its ledger */
    "{'name':'a','handler':'aggregate'," TO
    ",'ledger':{'table':'ledger'},'counters':[{'key':{'PK':'{g}'},'add':{"
    "'n':1}},{'key':{'PK':'ALL'},'add':{'n':1,'sum':'{n}'}}]},"
    "{'name':'b','handler':'aggregate'," TO "," LEDGER_BESIDE ",'counters':[{'key':{'PK':'{g}'},'add':{'m':"
    "'{n}','sum':'{n}'}}]}",
    /* several rows each */
    "{'name':'a','handler':'aggregate'," TO
    ",'shards':3,'counters':[{'key':{'PK':'{g}'},'add':{'n':1,'sum':'{n}'"
    "}}]}",
    /* values and members */
    "{'name':'a','handler':'aggregate'," TO
    ",'ledger':{'table':'ledger'},'counters':[{'key':{'PK':'{g}','SK':'-'}"
    ",'add':{'n':1},'distinct':{'different':'{n}','more':'{g}'},'members':{'by':'{n}'}}]}",
    /* rows that go when they are empty, and one attribute that counts alone */
    "{'name':'a','handler':'aggregate'," TO ",'empty':'delete','counters':[{'key':{'PK':'{g}'},'add':{'n':1},"
    "'distinct':{'different':'{n}'}}]}",
};

static void random_history(uint64_t with_seed)
{
    struct item items[8];
    seed = with_seed;
    for (size_t i = 0; i < 8; i++)
        items[i].group = -1;
    for (int i = 0; i < 40; i++) {
        size_t id = draw(8);
        change(id, &items[id], (struct item){(int)draw(4) - 1, (int)draw(5) - 2});
    }
}

static void after_any_history_they_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(configurations) / sizeof(configurations[0]); i++) {
        open_world(configurations[i / 2]);
        random_history(i + 1);
        pages_of_one = i % 2;
        if (verify_chosen(NULL) != SL_OK)
            fail_msg("%s", error.text);
        if (counts.different + counts.unsettled + counts.not_judged > 0 || counts.equal < 3 ||
            counts.targets != 1 || *lines)
            fail_msg("%s: %s", configurations[i / 2], lines);
        close_world();
    }
}

static void totals_are_verified_when_one_of_their_routes_is_chosen(void **state)
{
    (void)state;
    static const bool chosen[][2] = {{true, false}, {false, true}, {true, true}, {false, false}};
    open_world(configurations[1]);
    put(1, 1, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(verify_chosen(chosen[i]), SL_OK);
        assert_int_equal(counts.equal, i < 3 ? 5 : 0);
        assert_int_equal(counts.targets, i < 3);
    }
    close_world();
}

/* What a route without a ledger adds to, or one that keeps what expired, and what never goes back. */
static void what_no_ledger_proves_is_not_judged(void **state)
{
    (void)state;
    static const struct {
        const char *other;
        uint64_t equal, not_judged;
    } cases[] = {
        {"'per':'event','counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]", 1, 1},
        {"'mode':'at-least-once','counters':[{'key':{'PK':'ALL'},'add':{'n':1,'other':1}}]", 1, 1},
        {"'expired':'keep','counters':[{'key':{'PK':'ALL'},'add':{'sum':1}}]", 1, 1},
        {"'expired':'subtract','counters':[{'key':{'PK':'ALL'},'add':{'sum':1}}]", 2, 0},
        {"'counters':[{'key':{'PK':'ALL'},'running_max':{'n':'{n}'},'running_min':{'sum':'{n}'}}]", 0, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_world(json_printf("{'name':'a','handler':'aggregate'," TO
                               ",'counters':[{'key':{'PK':'ALL'},'add':{'n':1,"
                               "'sum':1}}]},{'name':'b','handler':'aggregate'," TO ",%s}",
                               cases[i].other));
        put(1, 1, 5);
        assert_counts(cases[i].equal, 0, 0);
        assert_int_equal(counts.not_judged, cases[i].not_judged);
        close_world();
    }
}

/* However many attributes the routes have, in tables of their own or in one. */
static void each_attribute_of_each_table_is_judged(void **state)
{
    (void)state;
    char add[5000] = "";
    for (int i = 0; i < 90; i++)
        snprintf(add + strlen(add), sizeof(add) - strlen(add), "%s'a%d':1", i ? "," : "", i);
    const char *mine = add, *theirs = json_printf("'b':1,%s", add);
    open_world(json_printf("{'name':'a','handler':'aggregate'," TO
                           ",'counters':[{'key':{'PK':'ALL'},'add':{%s}}]},"
                           "{'name':'b','handler':'aggregate'," TO
                           ",'ledger':{'name':'b2'},'shards':2,'counters':[{'key':{'PK':'ALL'},"
                           "'add':{%s}},{'key':{'PK':'ALL'},'running_max':{'a7':'{n}'}}]},"
                           "{'name':'c','handler':'aggregate','to':'sqlite:${DIR}/"
                           "db?table=other','counters':[{'key':{'PK':'ALL'},"
                           "'add':{%s}}]},"
                           "{'name':'d','handler':'aggregate','to':'sqlite:${DIR}/"
                           "db?table=other','counters':[{'key':{'PK':'ALL'},"
                           "'add':{'d':1}}]}",
                           mine, theirs, mine));
    put(1, 1, 5);
    assert_counts(90 + 90 + 1, 0, 0);
    assert_int_equal(counts.not_judged, 1);
    assert_int_equal(counts.targets, 2);
    stage_change(
        the, "db",
        "UPDATE other SET item = replace(item, '\"a89\":{\"N\":\"1\"}', '\"a89\":{\"N\":\"3\"}') WHERE key "
        "NOT LIKE '%sluice:%'");
    assert_counts(90 + 89 + 1, 1, 0);
    assert_line("'attribute':'a89','total':'3','ledger':'1','difference':'2'");
    close_world();
}

/* ---- damage ---- */

/* The totals' row is changed, of configuration `at`; what is said, and of how many. */
static const struct {
    size_t at;
    const char *sql, *line;
    uint64_t different;
} damages[] = {
    /* a name that JSON writes with an escape */
    {0,
     "UPDATE totals SET item = replace(item, '\"sé\":{\"N\":\"5\"}', '\"sé\":{\"N\":\"-5\"}') WHERE key NOT "
     "LIKE '%sluice:%'",
     "'total':'-5','ledger':'5','difference':'-10'", 1},
    /* rows of a group that no item is in; others' attributes; and a zero is fine */
    {1,
     "INSERT INTO totals VALUES ('{\"PK\":{\"S\":\"x\"}}', '{\"PK\":{\"S\":\"x\"},\"n\":{\"N\":\"3\"},\"m\":{"
     "\"N\":\"0\"},\"theirs\":{\"N\":\"9\"},\"sum\":{\"S\":\"9\"}}')",
     "'routes':['a','b'],'key':{'PK':{'S':'x'}},'attribute':'n','total':'3','ledger':'0','difference':'3'",
     1},
    {1, "DELETE FROM totals WHERE key LIKE '%ALL%'", "'attribute':'sum','total':'0','ledger':'5'", 2},
    /* what another repair has added is said with the sum */
    {1,
     "UPDATE totals SET item = "
     "'{\"sluice_added_n\":{\"N\":\"2\"},\"sluice_added_theirs\":{\"N\":\"1\"},\"n\":{"
     "\"N\":\"7\"},' || substr(replace(item, '\"n\":{\"N\":\"1\"}', '\"z\":{\"N\":\"1\"}'), 2) WHERE key "
     "LIKE "
     "'%ALL%'",
     "'difference':'6','mark':{'N':'2'}}", 1},
    /* a row of `shards` that is not there any more counts, whatever its number; another text does not */
    {2,
     "INSERT INTO totals VALUES ('{\"PK\":{\"S\":\"gé1#77\"}}', '{\"PK\":{\"S\":\"gé1#77\"},\"n\":{"
     "\"N\":\"2\"}}'), ('{\"PK\":{\"S\":\"gé1#7x\"}}', '{\"PK\":{\"S\":\"gé1#7x\"},\"n\":{\"N\":\"0\"}}'"
     "), ('{\"PK\":{\"S\":\"123\"}}', '{\"PK\":{\"S\":\"123\"},\"n\":{\"N\":\"0\"}}')",
     "'key':{'PK':{'S':'gé1'}},'attribute':'n','total':'3','ledger':'1','difference':'2'", 1},
    /* a member that is twice there, one that is none; a value of an attribute that nobody counts */
    {3,
     "INSERT INTO totals SELECT replace(key, '-#', '-#p9'), replace(item, '-#', '-#p9') FROM totals WHERE "
     "item "
     "LIKE '%\"by\"%'; INSERT INTO totals VALUES ('{\"PK\":{\"S\":\"gé1\"},\"SK\":{\"S\":\"-#1#2\"}}', "
     "'{\"PK\":{\"S\":\"gé1\"},\"SK\":{\"S\":\"-#1#2\"},\"by\":{\"N\":\"1\"}}')",
     "'kind':'members','handler':'aggregate'", 1},
    {3,
     "INSERT INTO totals VALUES ('{\"PK\":{\"S\":\"x\"},\"SK\":{\"S\":\"-#1#2\"}}', "
     "'{\"PK\":{\"S\":\"x\"},\"SK\":{"
     "\"S\":\"-#1#2\"},\"by\":{\"S\":\"1\"},\"item\":{\"M\":{}},\"n\":{\"N\":\"4\"}}')",
     "'attribute':'n','total':'4','ledger':'0','difference':'4'", 1},
    /* sums that need more than 38 digits */
    {2,
     "INSERT INTO totals VALUES ('{\"PK\":{\"S\":\"x#7\"}}', "
     "'{\"PK\":{\"S\":\"x#7\"},\"n\":{\"N\":\"1E+60\"}}'), "
     "('{\"PK\":{\"S\":\"x#8\"}}', '{\"PK\":{\"S\":\"x#8\"},\"n\":{\"N\":\"1\"}}'), "
     "('{\"PK\":{\"S\":\"12345678\"}}', "
     "'{\"PK\":{\"S\":\"12345678\"},\"n\":{\"N\":\"0\"}}'), ('{\"PK\":{\"S\":\"#1\"}}', "
     "'{\"PK\":{\"S\":\"#1\"},\"n\":{"
     "\"N\":\"0\"}}')",
     "'key':{'PK':{'S':'x'}},'attribute':'n','total':'beyond 38 digits','ledger':'0'", 1},
    {3, "DELETE FROM ledger WHERE key LIKE '%sluice:distinct:%different%'",
     "'kind':'sum','handler':'aggregate','target':'", 2},
};

static void each_damage_is_found_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        open_world(configurations[damages[i].at]);
        put(1, 1, 5);
        assert_int_equal(verify_chosen(NULL), SL_OK);
        uint64_t equal = counts.equal;
        assert_int_equal(counts.different, 0);
        stage_change(the, "db", damages[i].sql);
        assert_int_equal(verify_chosen(NULL), SL_OK);
        if (counts.different != damages[i].different || counts.unsettled || counts.equal > equal + 3)
            fail_msg("%zu: %llu different:\n%s", i, (unsigned long long)counts.different, lines);
        assert_line(damages[i].line);
        close_world();
    }
}

#define NUMBERED(members)                                                                                    \
    "{'name':'a','handler':'aggregate'," TO members ",'counters':[{'key':{'PK':'k'},'add':{'n':1}},{'key':{" \
    "'PK':'k#{n}'},'add':{'n':1,'sum':1}}]}"

/* A group whose own name ends as the rows of `shards` do is a group, and no part of another: also where its
 * row was made before there were any. */
static void a_group_may_have_a_number_at_its_end(void **state)
{
    (void)state;
    open_world(NUMBERED(""));
    for (int i = 0; i < 6; i++)
        put((size_t)i, 1, i + 10);
    assert_counts(13, 0, 0);
    stage_reopen(the, json_printf(CONFIG, NUMBERED(",'shards':2")));
    assert_counts(13, 0, 0);
    for (int i = 6; i < 12; i++)
        put((size_t)i, 1, i + 10);
    assert_counts(25, 0, 0);
    /* In the second round, too, when it is settled and the group that it is no part of is not. */
    stage_change(the, "db",
                 "UPDATE totals SET item = replace(item, '\"n\":{\"N\":\"6\"}', '\"n\":{\"N\":\"9\"}') WHERE "
                 "key NOT LIKE '%sluice:%'");
    assert_counts(24, 1, 0);
    assert_line("'key':{'PK':{'S':'k'}},'attribute':'n','total':'15','ledger':'12','difference':'3'");
    close_world();
}

/* What waits in a delta row is in the ledger, and not in the total yet. */
static void deltas_that_wait_are_counted_apart(void **state)
{
    (void)state;
    open_world("{'name':'a','handler':'aggregate'," TO ",'counters':[{'key':{'PK':'g'},'add':{'n':1}}]}");
    for (int i = 0; i < 6; i++)
        put((size_t)i, 1, i + 10);
    stage_change(the, "db",
                 "UPDATE totals SET item = replace(item, '\"n\":{\"N\":\"6\"}', '\"n\":{\"N\":\"2\"}')");
    assert_counts(0, 1, 0);
    stage_change(
        the, "db",
        json(
            "INSERT INTO totals VALUES (\\'{'x':{'N':'1'}}\\', "
            "\\'{'PK':{'S':'sluice:delta:a:0'},'sluice_delta':"
            "{'S':'x'},'sluice_sums':{'L':[{'M':{'key':{'M':{'PK':{'S':'g'}}},'add':{'M':{'n':{'N':'4'}}}}}]}"
            "}\\')"));
    assert_counts(1, 0, 0);
    close_world();
}

/* Rows that are not as a ledger's are: what they say does not count, and nothing breaks. */
static void rows_that_are_no_ledgers_are_passed_over(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "'PK':{'S':'sluice:ledger:a:x'}",
        "'PK':{'S':'sluice:ledger:a:x'},'order':{'S':'1'}",
        "'PK':{'S':'sluice:ledger:a:x'},'order':{'N':'1'},'sums':{'L':[]}",
        "'PK':{'S':'sluice:ledger:a:x'},'order':{'S':'1'},'sums':{'L':[{'S':'x'},{'M':{}},{'M':{'key':{'M':{'"
        "PK':{"
        "'S':'y'}}},'add':{'M':{'n':{'S':'1'},'theirs':{'N':'1'}}}}},{'M':{'key':{'M':{'X':{'S':'y'}}},'add':"
        "{'M':{"
        "'n':{'N':'1'}}},'distinct':{'M':{'d':{'N':'1'}}},'member':{'N':'1'}}}]}",
        "'PK':{'S':'sluice:delta:a:0'}",
        "'PK':{'S':'sluice:delta:a:0'},'sluice_delta':{'S':'x'}",
        "'PK':{'S':'sluice:distinct:a:x'}",
        "'PK':{'S':'sluice:distinct:a:x'},'attribute':{'S':'d'},'n':{'N':'1'}",
        "'PK':{'S':'sluice:distinct:a:x'},'group':{'M':{'PK':{'S':'y'}}},'n':{'N':'1'}",
        "'PK':{'S':'sluice:distinct:a:x'},'group':{'M':{'PK':{'S':'y'}}},'attribute':{'S':'d'},'n':{'S':'1'}",
        "'PK':{'S':'sluice:source:a'},'n':{'N':'7'}",
        "'PK':{'N':'7'}",
        "'ID':{'S':'7'},'n':{'N':'7'}",
    };
    open_world("{'name':'a','handler':'aggregate'," TO
               ",'counters':[{'key':{'PK':'{g}'},'add':{'n':1},'distinct':{'d"
               "':'{n}'}}]}");
    put(1, 1, 5);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_counts(3, 0, 0);
        stage_change(
            the, "db",
            json_printf("INSERT INTO totals VALUES (\\'{'x':{'N':'%zu'}}\\', \\'{%s}\\')", i, rows[i]));
    }
    assert_counts(3, 0, 0);
    /* A value that no item has any more, or less than none, counts for none. */
    for (int n = 0; n > -2; n--) {
        stage_change(
            the, "db",
            json_printf("INSERT OR REPLACE INTO totals VALUES (\\'{'x':{'N':'99'}}\\', \\'{'PK':{'S':'sluice:"
                        "distinct:a:x'},'group':{'M':{'PK':{'S':'y'}}},'attribute':{'S':'d'},'value':{'N':"
                        "'1'},'n':{'N':'%d'}}\\')",
                        n));
        assert_counts(n ? 4 : 5, n ? 1 : 0, 0);
    }
    assert_line("'kind':'values'");
    close_world();
}

/* ---- what moves ---- */

static void nothing(size_t n)
{
    (void)n;
}

static int moved;

static void move_always(size_t n)
{
    (void)n;
    struct item was = {1, 5 + moved};
    change(1, &was, (struct item){1, 6 + moved++});
}

static void move_in_the_first_round(size_t n)
{
    if (n <= 3)
        move_always(n);
}

static void move_another_group(size_t n)
{
    (void)n;
    struct item was = {2, moved};
    change(2, &was, (struct item){2, ++moved});
}

/* In the fourth round the total becomes right: no scan before that is enough to call it wrong. */
static void set_right_in_the_fourth_round(size_t n)
{
    move_another_group(n);
    if (n == 8)
        stage_change(the, "db",
                     "UPDATE totals SET item = replace(item, '\"sum\":{\"N\":\"105\"}', "
                     "'\"sum\":{\"N\":\"5\"}') WHERE key NOT LIKE '%sluice:%'");
}

#define SUMS                                                                                                 \
    "{'name':'a','handler':'aggregate'," TO ",'counters':[{'key':{'PK':'{g}'},'add':{'n':1,'sum':'{n}'}}]}"

static void what_moves_is_never_a_difference(void **state)
{
    (void)state;
    static const struct {
        void (*moves)(size_t n);
        bool is_off; /* the total of the group 1 */
        uint64_t equal, different, unsettled;
        size_t scans;
    } cases[] = {
        {nothing, false, 4, 0, 0, 3},
        {nothing, true, 3, 1, 0, 5},
        {move_in_the_first_round, false, 4, 0, 0, 5},
        {move_in_the_first_round, true, 3, 1, 0, 7},
        {move_always, false, 2, 0, 2, 11},
        {move_always, true, 2, 0, 2, 11},
        {move_another_group, false, 2, 0, 2, 11},
        {move_another_group, true, 1, 1, 2, 11},
        {set_right_in_the_fourth_round, true, 2, 0, 2, 11},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_world(SUMS);
        moved = 0;
        put(1, 1, 5);
        put(2, 2, 0);
        if (cases[i].is_off)
            stage_change(the, "db",
                         "UPDATE totals SET item = replace(item, '\"sum\":{\"N\":\"5\"}', "
                         "'\"sum\":{\"N\":\"105\"}') WHERE key NOT LIKE '%sluice:%'");
        before_scan = cases[i].moves;
        assert_counts(cases[i].equal, cases[i].different, cases[i].unsettled);
        assert_int_equal(n_scans, cases[i].scans);
        if (cases[i].different)
            assert_line("'attribute':'sum'"), assert_line("'difference':'100'");
        if (cases[i].unsettled)
            assert_line("'why':'the ledger changed during every scan; stop the consumer and try again'");
        close_world();
    }
}

/* The interval in which the difference was seen: what is truly off is in it. */
static void what_never_stood_still_has_an_interval(void **state)
{
    (void)state;
    open_world(SUMS);
    moved = 0;
    put(1, 1, 5);
    stage_change(the, "db",
                 "UPDATE totals SET item = replace(item, '\"sum\":{\"N\":\"5\"}', '\"sum\":{\"N\":\"105\"}') "
                 "WHERE key NOT LIKE '%sluice:%'");
    before_scan = move_always;
    assert_counts(0, 0, 2);
    /* Between the first scan of the ledger and that of the totals, and between that and the second, it grows
     * by one. */
    assert_line("'attribute':'sum','low':'99','high':'101'");
    assert_line("'attribute':'n','low':'0','high':'0'");
    close_world();
    /* Rows of values and members have no number. */
    open_world(configurations[3]);
    moved = 0;
    put(1, 1, 5);
    before_scan = move_always;
    if (verify_chosen(NULL) != SL_OK || counts.unsettled == 0 || counts.different)
        fail_msg("%s", lines);
    assert_line("'kind':'members'");
    assert_line("'SK':{'S':'-'}},'why':'the ledger changed during every scan");
    close_world();
}

/* ---- what cannot be read ---- */

static void a_scan_that_fails_ends_it(void **state)
{
    (void)state;
    static const struct {
        struct sl_result failure;
        enum sl_status status;
        const char *code, *text;
    } cases[] = {
        {{.status = SL_RETRY, .code = "Later", .text = "not now"}, SL_RETRY, "Later", "not now"},
        {{.status = SL_FATAL, .code = "Gone", .text = "no such table"}, SL_FATAL, "Gone", "no such table"},
        {{.status = SL_REJECT, .code = "Odd", .text = "no such key"}, SL_FATAL, "Odd", "no such key"},
    };
    open_world(SUMS);
    put(1, 1, 5);
    stage_change(the, "db", "DELETE FROM totals WHERE key NOT LIKE '%sluice:%'");
    assert_counts(0, 2, 0);
    size_t whole = n_scans;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (failing_scan = 1; failing_scan <= whole; failing_scan++) {
            failure = cases[i].failure;
            assert_int_equal(verify_chosen(NULL), cases[i].status);
            assert_string_equal(error.code, cases[i].code);
            assert_string_equal(error.text, cases[i].text);
            assert_string_equal(lines, "");
        }
    close_world();
}

static void a_scan_without_an_end_is_told(void **state)
{
    (void)state;
    open_world(SUMS);
    put(1, 1, 5);
    goes_round = true;
    assert_int_equal(verify_chosen(NULL), SL_FATAL);
    assert_string_equal(error.code, "EndlessScan");
    assert_non_null(strstr(error.text, "segment 0 of a scan lead round to a key that was read already"));
    close_world();
}

/* Whenever it is stopped: nothing is said that was not proven. */
static void a_check_may_be_stopped_at_any_page(void **state)
{
    (void)state;
    open_world(configurations[1]);
    put(1, 1, 5);
    stage_change(the, "db", "DELETE FROM totals WHERE key LIKE '%ALL%'");
    assert_counts(3, 2, 0);
    size_t whole = asked;
    for (stops_at = 1; stops_at < whole; stops_at++) {
        assert_int_equal(verify_chosen(NULL), SL_OK);
        assert_int_equal(counts.different + counts.unsettled, 0);
        assert_string_equal(lines, "");
    }
    stops_at = 0;
    close_world();
}

/* ---- more groups than fit into memory ---- */

#define APART                                                                                                \
    "{'name':'a','handler':'aggregate'," TO ",'ledger':{'table':'ledger'},'counters':[{'key':{'PK':'{g}'},"  \
    "'add':{'n':1}}]}"

static void totals_of_any_size_are_verified_in_parts(void **state)
{
    (void)state;
    open_world(APART);
    put(1, 1, 5);
    n_made = (size_t)GROUPS * 3 / 4 - 1; /* as many as the first pass takes */
    wrong = SIZE_MAX;
    assert_counts(n_made + 1, 0, 0);
    assert_int_equal(n_scans, 3);
    n_made++;
    wrong = 77;
    assert_counts(n_made, 1, 0);
    assert_line("'key':{'PK':{'S':'k77'}},'attribute':'n','total':'1','ledger':'0','difference':'1'");
    assert_int_equal(n_scans, 2 + 3 + 5); /* one that was too much, and two parts */
    close_world();
}

/* Rows that may be parts of one group are in one part of the check. */
static void numbers_at_the_end_stay_with_their_groups(void **state)
{
    (void)state;
    open_world(NUMBERED(",'ledger':{'table':'ledger'}"));
    for (int i = 0; i < 40; i++)
        put((size_t)i, 1, i + 10);
    stage_reopen(the, json_printf(CONFIG, NUMBERED(",'shards':2,'ledger':{'table':'ledger'}")));
    n_made = (size_t)GROUPS * 3 / 4;
    wrong = SIZE_MAX;
    assert_counts(n_made + 81, 0, 0);
    assert_int_equal(n_scans, 2 + 3 + 3);
    close_world();
}

static void grow(size_t n)
{
    if (n == 6)
        n_made *= 3;
}

static void totals_that_grow_too_fast_are_told(void **state)
{
    (void)state;
    open_world(APART);
    put(1, 1, 5);
    n_made = (size_t)GROUPS * 3 / 4;
    wrong = SIZE_MAX;
    before_scan = grow;
    assert_int_equal(verify_chosen(NULL), SL_FATAL);
    assert_string_equal(error.code, "TooManyGroups");
    assert_non_null(strstr(error.text, "the totals have too many rows, or grew too fast to be verified"));
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_any_history_they_agree),
        cmocka_unit_test(totals_are_verified_when_one_of_their_routes_is_chosen),
        cmocka_unit_test(what_no_ledger_proves_is_not_judged),
        cmocka_unit_test(each_attribute_of_each_table_is_judged),
        cmocka_unit_test(each_damage_is_found_alone),
        cmocka_unit_test(a_group_may_have_a_number_at_its_end),
        cmocka_unit_test(deltas_that_wait_are_counted_apart),
        cmocka_unit_test(rows_that_are_no_ledgers_are_passed_over),
        cmocka_unit_test(what_moves_is_never_a_difference),
        cmocka_unit_test(what_never_stood_still_has_an_interval),
        cmocka_unit_test(a_scan_that_fails_ends_it),
        cmocka_unit_test(a_scan_without_an_end_is_told),
        cmocka_unit_test(a_check_may_be_stopped_at_any_page),
        cmocka_unit_test(totals_of_any_size_are_verified_in_parts),
        cmocka_unit_test(numbers_at_the_end_stay_with_their_groups),
        cmocka_unit_test(totals_that_grow_too_fast_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
