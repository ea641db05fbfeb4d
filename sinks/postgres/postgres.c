/* A table in PostgreSQL: carries operations out.
 *
 * An apply is a few pipelines. Each turn reads the rows that have to be looked at, judges them, and writes
 * what is left: single operations together in transactions of some hundred, each group in one of its own.
 * A write that found its test not to hold is looked at in the next turn: either the row as it is now says
 * why, or somebody was faster, and it is written again. */
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "sinks/postgres.h"
#include "sinks/postgres/postgres_private.h"
#include "sinks/result.h"

#include <stdlib.h>

#define TOGETHER       250               /* single operations of one transaction */
#define TOGETHER_BYTES (1024 * 1024)     /* their items */
#define TURN_BYTES     ((size_t)8 << 20) /* of one pipeline, which is in memory whole */
#define TRIES          12                /* of one unit, when others are faster or the server fails */

enum unit_state { LOOK, WRITE, SETTLED };

/* One operation, or a whole group. */
struct unit {
    struct sl_postgres_step *steps;
    size_t n;
    enum unit_state state;
    bool is_alone;             /* its transaction holds nothing else: something in it was refused */
    const struct unit *before; /* an operation on the same key that has to be over first; NULL: none */
    unsigned tries;
};

struct apply {
    struct sl_postgres *p;
    struct unit *units;
    size_t n;
    struct sl_arena *arena; /* of the results */
    struct sl_error last;   /* the failure of the last turn that passes */
    struct sl_error cause;  /* the last that says more than that time is over */
    bool is_begun;          /* something was sent */
    bool is_left;           /* the connection is to be closed: another may do better */
};

/* ---- results ---- */

static struct sl_span table_of(const struct sl_postgres *p, const struct sl_table_op *op)
{
    return op->table.ptr ? op->table : sl_span_str(p->target.own);
}

static void fail_step(const struct apply *a, const struct sl_postgres_step *step,
                      const struct sl_error *error)
{
    sl_result_fail(step->result, a->arena, error->status, sl_arena_copy(a->arena, sl_span_str(error->code)),
                   "%s", error->text);
    step->result->not_sent = !a->is_begun;
}

static void fail_unit(const struct apply *a, struct unit *unit, const struct sl_error *error)
{
    for (size_t i = 0; i < unit->n; i++)
        fail_step(a, &unit->steps[i], error);
    unit->state = SETTLED;
}

/* Those of a refused group that were not the cause. */
static void cancel_rest(const struct apply *a, struct unit *unit)
{
    for (size_t i = 0; i < unit->n; i++)
        if (unit->steps[i].result->status == SL_OK)
            sl_table_cancel(unit->steps[i].result, a->arena, a->p->target.shown, SL_REJECT);
    unit->state = SETTLED;
}

/* The operation cannot be; of a group nothing is done. */
static void refuse(const struct apply *a, struct unit *unit, const struct sl_postgres_step *step,
                   const struct sl_error *error)
{
    fail_step(a, step, error);
    cancel_rest(a, unit);
}

static bool is_due(const struct unit *unit, enum unit_state state)
{
    return unit->state == state && (!unit->before || unit->before->state == SETTLED);
}

static bool is_settled(const struct apply *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->units[i].state != SETTLED)
            return false;
    return true;
}

static void fail_rest(const struct apply *a, const struct sl_error *error)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->units[i].state != SETTLED)
            fail_unit(a, &a->units[i], error);
}

/* Nothing is written: a read, or a test alone. */
static bool is_only_looked_at(const struct sl_table_op *op)
{
    return sl_table_is_read(op) || (op->verb == SL_TABLE_CHECK && !op->group);
}

/* ---- before anything is sent ---- */

static enum sl_status check_step(struct sl_postgres *p, struct sl_postgres_step *step, struct sl_error *error)
{
    if (sl_table_check_op(step->op, &p->key, error) != SL_OK)
        return SL_REJECT;
    step->key = sl_span(sl_arena_copy(p->scratch, sl_buffer_span(&p->key)), p->key.len);
    return sl_item_test(step->op, (struct sl_span){NULL, 0}, &step->holds_on_absent, error);
}

/* Equal rows have equal texts. */
static struct sl_span row_text(struct sl_postgres *p, const struct sl_postgres_step *step)
{
    struct sl_span table = table_of(p, step->op);
    const char *text = sl_arena_printf(p->scratch, "%.*s%.*s", SL_ARG(table), SL_ARG(step->key));
    return sl_span(text, table.len + step->key.len);
}

static bool check_group(const struct apply *a, const struct unit *unit)
{
    struct sl_postgres *p = a->p;
    struct sl_span *keys = sl_arena_alloc(p->scratch, unit->n * sizeof(*keys));
    for (size_t i = 0; i < unit->n; i++)
        keys[i] = row_text(p, &unit->steps[i]);
    return sl_table_group_check(&(struct sl_table_group){.keys = keys,
                                                         .results = unit->steps[0].result,
                                                         .n = unit->n,
                                                         .target = p->target.shown,
                                                         .arena = a->arena});
}

static void check_unit(const struct apply *a, struct unit *unit)
{
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (check_step(a->p, &unit->steps[i], &error) != SL_OK)
            sl_result_refuse(unit->steps[i].result, a->arena, &error);
        if (is_only_looked_at(unit->steps[i].op) || unit->steps[i].op->verb == SL_TABLE_UPDATE)
            unit->state = LOOK;
    }
    if (unit->steps[0].op->group ? !check_group(a, unit) : unit->steps[0].result->status != SL_OK)
        unit->state = SETTLED;
}

/* Several operations on one key are carried out in their order, one in a turn: each may be tried again. */
static void chain_units(const struct apply *a)
{
    struct sl_map keys;
    const struct unit **last = sl_arena_zalloc(a->p->scratch, (a->n + 1) * sizeof(*last));
    sl_map_init(&keys, a->p->scratch, a->n);
    for (size_t i = 0; i < a->n; i++) {
        struct unit *unit = &a->units[i];
        if (unit->state == SETTLED || unit->steps[0].op->group)
            continue;
        uint32_t n = sl_map_index(&keys, row_text(a->p, unit->steps));
        unit->before = last[n];
        last[n] = unit;
    }
}

/* What needs the table: its key as parameters, and the row of a PUT. */
static void fit_step(const struct apply *a, struct unit *unit, struct sl_postgres_step *step)
{
    struct sl_postgres *p = a->p;
    struct sl_error error = SL_NO_ERROR;
    if (sl_postgres_table(p, table_of(p, step->op), step->op->key, &step->table, &error) == SL_OK &&
        sl_postgres_key_params(p, step->table, step->op->key, step->key_params, &error) == SL_OK &&
        (step->op->verb != SL_TABLE_PUT || sl_postgres_make_row(p, step, step->op->item, &error) == SL_OK))
        return;
    p->is_stale = p->is_stale || error.status == SL_FATAL;
    if (error.status == SL_REJECT)
        refuse(a, unit, step, &error);
    else
        fail_unit(a, unit, &error);
}

static void fit_units(const struct apply *a)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->units[i].n && a->units[i].state != SETTLED; k++)
            fit_step(a, &a->units[i], &a->units[i].steps[k]);
}

/* ---- a turn's statements ---- */

/* Statements on their way, and whose they are. */
struct turn {
    struct sl_postgres_statement *statements;
    struct unit **units; /* of each statement */
    struct sl_postgres_step **steps;
    size_t n;
    size_t bytes;
};

static struct turn turn_of(const struct apply *a, size_t n)
{
    struct sl_arena *scratch = a->p->scratch;
    return (struct turn){.statements =
                             sl_arena_alloc(scratch, (n + 1) * sizeof(struct sl_postgres_statement)),
                         .units = sl_arena_alloc(scratch, (n + 1) * sizeof(struct unit *)),
                         .steps = sl_arena_alloc(scratch, (n + 1) * sizeof(struct sl_postgres_step *))};
}

static void add_statement(struct turn *t, struct sl_postgres_statement statement, struct unit *unit,
                          struct sl_postgres_step *step)
{
    for (int i = 0; i < statement.n_params; i++)
        t->bytes += statement.params[i].bytes  ? (size_t)statement.params[i].bytes
                    : statement.params[i].text ? strlen(statement.params[i].text)
                                               : 0;
    t->statements[t->n] = statement;
    t->units[t->n] = unit;
    t->steps[t->n++] = step;
}

/* A try is over without an outcome. */
static void try_again(struct apply *a, struct unit *unit, const struct sl_error *error)
{
    a->last = *error;
    if (strcmp(error->code, "DeadlineExceeded") != 0)
        a->cause = *error;
    if (++unit->tries >= TRIES)
        fail_unit(a, unit, error);
}

/* A test did not hold on the row as it was when it was written: it is looked at. Only who was overtaken twice
 * waits. */
static void look_again(struct apply *a, struct unit *unit)
{
    static const struct sl_error contended = {
        SL_RETRY, SL_NO_OFFSET, "Contended",
        "the condition held, and yet the row was not written: others change it all the time, or a trigger "
        "suppresses the write"};
    unit->state = LOOK;
    if (unit->tries == 0)
        unit->tries = 1;
    else
        try_again(a, unit, &contended);
}

/* The connection is lost: what was not done is not known. Those without an outcome are tried again. */
static void lose(struct apply *a, struct turn *t, const struct sl_error *error)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->units[i]->state != SETTLED && (i == 0 || t->units[i] != t->units[i - 1]) &&
            t->statements[i].end != SL_POSTGRES_DONE)
            try_again(a, t->units[i], error);
}

/* ---- looking ---- */

static void take_look(struct apply *a, struct unit *unit, struct sl_postgres_step *step, const PGresult *rows)
{
    struct sl_error error = SL_NO_ERROR;
    step->have = (struct sl_span){NULL, 0};
    step->before = NULL;
    if (PQntuples(rows) == 0)
        return;
    step->before = sl_arena_copy(a->p->scratch, sl_span_str(PQgetvalue(rows, 0, (int)step->table->n_keys)));
    if (sl_postgres_take_item(a->p, step->table, rows, 0, a->p->scratch, &step->have, &error) != SL_OK)
        refuse(a, unit, step, &error);
}

/* The tests, on the row as it is. */
static bool test_step(const struct apply *a, struct sl_postgres_step *step)
{
    struct sl_error error = SL_NO_ERROR;
    bool holds = true;
    if (sl_item_test(step->op, step->have, &holds, &error) != SL_OK)
        fail_step(a, step, &error);
    else if (!holds)
        sl_table_condition_failed(step->result, a->arena, step->op, step->have);
    return step->result->status == SL_OK;
}

static bool update_step(const struct apply *a, struct sl_postgres_step *step)
{
    struct sl_error error = SL_NO_ERROR;
    /* What the row has in `item`: columns that say otherwise are set right by the way. */
    struct sl_span item = step->have.ptr ? sl_span_str(step->before) : step->op->key;
    if (sl_item_update(step->op, item, a->p->scratch, &item, &error) == SL_OK &&
        sl_table_check_bytes(item, &error) == SL_OK &&
        sl_postgres_make_row(a->p, step, item, &error) == SL_OK)
        return true;
    fail_step(a, step, &error);
    return false;
}

static void judge_unit(const struct apply *a, struct unit *unit)
{
    struct sl_postgres_step *first = unit->steps;
    if (is_only_looked_at(first->op)) {
        if (test_step(a, first) && first->have.ptr && sl_table_is_read(first->op))
            first->result->item = sl_span(sl_arena_copy(a->arena, first->have), first->have.len);
        unit->state = SETTLED;
        return;
    }
    bool is_good = true;
    for (size_t i = 0; i < unit->n; i++)
        is_good = test_step(a, &unit->steps[i]) && is_good;
    /* Here the tests are carried out as the service does. Where SQL finds otherwise (a column that somebody
     * changed is a part of the item here), the row that was looked at decides. */
    for (size_t i = 0; i < unit->n && is_good; i++) {
        unit->steps[i].is_by_item = unit->tries > 1 && unit->steps[i].op->n_tests;
        is_good = unit->steps[i].op->verb != SL_TABLE_UPDATE || update_step(a, &unit->steps[i]);
    }
    unit->state = WRITE;
    if (!is_good)
        cancel_rest(a, unit);
    else if (first->op->verb == SL_TABLE_DELETE && unit->n == 1 && !first->have.ptr)
        unit->state = SETTLED; /* there is nothing to remove */
}

static size_t add_looks(struct apply *a, struct turn *t, size_t from)
{
    size_t i = from;
    for (; i < a->n && t->n < 4 * TOGETHER; i++)
        for (size_t k = 0; k < a->units[i].n && is_due(&a->units[i], LOOK); k++)
            add_statement(t, sl_postgres_read_of(a->p, &a->units[i].steps[k]), &a->units[i],
                          &a->units[i].steps[k]);
    if (t->n)
        t->statements[t->n - 1].is_last = true;
    return i;
}

/* All reads of a turn are one transaction: what failed is of all of them. */
static void fail_look(struct apply *a, struct turn *t, size_t failed)
{
    struct sl_error error = SL_NO_ERROR;
    enum sl_postgres_fault fault =
        sl_postgres_judge(a->p, t->statements[failed].result, t->steps[failed]->table, &error);
    bool passes = fault == SL_POSTGRES_PASSES || fault == SL_POSTGRES_REPEATS;
    a->is_left = a->is_left || fault == SL_POSTGRES_PASSES;
    a->p->is_stale = a->p->is_stale || !passes;
    for (size_t i = 0; i < t->n; i++)
        if (t->units[i]->state == LOOK && (i == 0 || t->units[i] != t->units[i - 1])) {
            if (passes)
                try_again(a, t->units[i], &error);
            else
                fail_unit(a, t->units[i], &error);
        }
}

static void end_look(struct apply *a, struct turn *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->statements[i].end == SL_POSTGRES_FAILED) {
            fail_look(a, t, i);
            return;
        }
    for (size_t i = 0; i < t->n; i++)
        if (t->units[i]->state == LOOK && t->statements[i].end == SL_POSTGRES_DONE)
            take_look(a, t->units[i], t->steps[i], t->statements[i].result);
    for (size_t i = 0; i < t->n; i++)
        if (t->units[i]->state == LOOK && (i + 1 == t->n || t->units[i + 1] != t->units[i]) &&
            t->statements[i].end == SL_POSTGRES_DONE)
            judge_unit(a, t->units[i]);
}

/* ---- writing ---- */

static int compare_texts(struct sl_span x, struct sl_span y)
{
    int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* By table and key: who locks rows in one order does not wait for him who waits for us. */
static int by_row(const void *left, const void *right)
{
    const struct sl_postgres_step *a = *(struct sl_postgres_step *const *)left,
                                  *b = *(struct sl_postgres_step *const *)right;
    int order = compare_texts(a->table->name, b->table->name);
    return order ? order : compare_texts(a->key, b->key);
}

static int by_first_row(const void *left, const void *right)
{
    const struct unit *a = *(struct unit *const *)left, *b = *(struct unit *const *)right;
    return by_row(&a->steps, &b->steps);
}

static void add_group(struct apply *a, struct turn *t, struct unit *unit)
{
    struct sl_postgres_statement made[SL_POSTGRES_GROUPED];
    struct sl_postgres_step *sorted[SL_TABLE_GROUP_MAX];
    for (size_t i = 0; i < unit->n; i++)
        sorted[i] = &unit->steps[i];
    qsort(sorted, unit->n, sizeof(sorted[0]), by_row);
    for (size_t i = 0; i < unit->n; i++) {
        size_t n = sl_postgres_group_of(a->p, sorted[i], made);
        for (size_t k = 0; k < n; k++)
            add_statement(t, made[k], unit, sorted[i]);
    }
    t->statements[t->n - 1].is_last = true;
}

/* Adds units until the pipeline is full; returns where the next one goes on. Single operations come first, in
 * the order of their rows. */
static size_t add_writes(struct apply *a, struct turn *t, struct unit **sorted, size_t n, size_t from)
{
    size_t together = 0, bytes = 0, i = from;
    for (; i < n && t->bytes < TURN_BYTES; i++) {
        struct unit *unit = sorted[i];
        if (unit->n > 1 || unit->steps[0].op->group) {
            add_group(a, t, unit);
            together = 0;
            continue;
        }
        size_t before = t->bytes;
        add_statement(t, sl_postgres_write_of(a->p, unit->steps), unit, unit->steps);
        bytes += t->bytes - before;
        bool is_end = unit->is_alone || ++together == TOGETHER || bytes > TOGETHER_BYTES || i + 1 == n ||
                      sorted[i + 1]->is_alone || sorted[i + 1]->steps[0].op->group;
        t->statements[t->n - 1].is_last = is_end;
        if (is_end)
            together = bytes = 0;
    }
    if (t->n)
        t->statements[t->n - 1].is_last = true;
    return i;
}

/* A failure of a transaction from `first` to `last`; `at` is the statement that failed. */
static void fail_transaction(struct apply *a, struct turn *t, size_t first, size_t last, size_t at)
{
    struct sl_error error = SL_NO_ERROR;
    struct unit *unit = t->units[at];
    bool is_group = unit->steps[0].op->group;
    enum sl_postgres_fault fault =
        sl_postgres_judge(a->p, t->statements[at].result, t->steps[at]->table, &error);
    if (fault == SL_POSTGRES_RAISES && is_group) {
        look_again(a, unit);
        return;
    }
    a->p->is_stale = a->p->is_stale || fault == SL_POSTGRES_STANDS;
    a->is_left = a->is_left || fault == SL_POSTGRES_PASSES || fault == SL_POSTGRES_MOVED;
    if ((fault == SL_POSTGRES_REFUSES || fault == SL_POSTGRES_RAISES) &&
        (is_group || t->units[first] == t->units[last])) {
        refuse(a, unit, t->steps[at], &error);
        return;
    }
    for (size_t i = first; i <= last; i++)
        if (t->units[i]->state == WRITE && (i == first || t->units[i] != t->units[i - 1])) {
            if (fault == SL_POSTGRES_STANDS)
                fail_unit(a, t->units[i], &error);
            else if (fault == SL_POSTGRES_REFUSES || fault == SL_POSTGRES_RAISES)
                t->units[i]->is_alone = true;
            else
                try_again(a, t->units[i], &error);
        }
}

static void end_single(struct apply *a, struct turn *t, size_t i)
{
    struct unit *unit = t->units[i];
    const struct sl_table_op *op = unit->steps[0].op;
    bool is_conditional = op->n_tests || op->verb == SL_TABLE_UPDATE;
    if (PQntuples(t->statements[i].result) > 0 || (!is_conditional && op->verb == SL_TABLE_DELETE)) {
        unit->state = SETTLED;
        return;
    }
    look_again(a, unit);
}

static void end_writes(struct apply *a, struct turn *t)
{
    for (size_t first = 0, last; first < t->n; first = last + 1) {
        size_t failed = t->n;
        for (last = first;; last++) {
            if (t->statements[last].end == SL_POSTGRES_FAILED)
                failed = last;
            if (t->statements[last].is_last)
                break;
        }
        if (failed < t->n) {
            fail_transaction(a, t, first, last, failed);
            continue;
        }
        for (size_t i = first; i <= last && t->statements[i].end == SL_POSTGRES_DONE; i++)
            if (t->units[i]->steps[0].op->group)
                t->units[i]->state = SETTLED;
            else
                end_single(a, t, i);
    }
}

/* ---- turns ---- */

/* False: the connection is lost; what had an outcome has it. */
static bool run_turn(struct apply *a, struct turn *t, void (*take)(struct apply *, struct turn *))
{
    struct sl_error error = SL_NO_ERROR;
    if (t->n == 0)
        return true;
    bool is_done = sl_postgres_run(a->p, t->statements, t->n, &error) == SL_OK;
    take(a, t);
    if (!is_done)
        lose(a, t, &error);
    else if (a->is_left)
        sl_postgres_disconnect(a->p);
    sl_postgres_drop(t->statements, t->n);
    return is_done && !a->is_left;
}

static size_t count(const struct apply *a, enum unit_state state, size_t each)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->units[i].state == state)
            n += each * a->units[i].n;
    return n;
}

static bool look(struct apply *a)
{
    if (count(a, LOOK, 1) == 0)
        return true;
    struct turn t = turn_of(a, 4 * TOGETHER + SL_TABLE_GROUP_MAX);
    for (size_t from = 0; from < a->n;) {
        t.n = 0;
        from = add_looks(a, &t, from);
        if (!run_turn(a, &t, end_look))
            return false;
    }
    return true;
}

static bool write_units(struct apply *a)
{
    size_t n = 0, room = count(a, WRITE, SL_POSTGRES_GROUPED);
    struct unit **sorted = sl_arena_alloc(a->p->scratch, (a->n + 1) * sizeof(struct unit *));
    for (size_t i = 0; i < a->n; i++)
        if (is_due(&a->units[i], WRITE) && !a->units[i].steps[0].op->group)
            sorted[n++] = &a->units[i];
    if (n)
        qsort(sorted, n, sizeof(struct unit *), by_first_row);
    for (size_t i = 0; i < a->n; i++)
        if (a->units[i].state == WRITE && a->units[i].steps[0].op->group)
            sorted[n++] = &a->units[i];
    struct turn t = turn_of(a, room);
    for (size_t from = 0; from < n;) {
        t.n = t.bytes = 0;
        from = add_writes(a, &t, sorted, n, from);
        if (!run_turn(a, &t, end_writes))
            return false;
    }
    return true;
}

static void run_units(struct apply *a)
{
    struct sl_postgres *p = a->p;
    bool is_fitted = false;
    for (unsigned tries = 0; !is_settled(a); tries++) {
        struct sl_error error = SL_NO_ERROR;
        if (p->clock->now_ms(p->clock) >= p->deadline_ms ||
            (tries && a->last.status != SL_OK && !sl_postgres_wait(p, tries))) {
            (void)sl_fail(&error, SL_RETRY, "DeadlineExceeded", "%s: no time was left for it%s%s",
                          p->target.shown, a->cause.status ? ": " : "", a->cause.text);
            fail_rest(a, &error);
            return;
        }
        sl_error_clear(&a->last);
        a->is_left = false;
        if (sl_postgres_connect(p, &error) != SL_OK) {
            if (error.status == SL_FATAL)
                fail_rest(a, &error);
            for (size_t i = 0; i < a->n; i++)
                if (a->units[i].state != SETTLED) {
                    a->units[i].tries += 2; /* each costs a handshake */
                    try_again(a, &a->units[i], &error);
                }
            continue;
        }
        if (!is_fitted)
            fit_units(a);
        is_fitted = true;
        a->is_begun = true;
        if (look(a))
            (void)write_units(a);
    }
}

void sl_postgres_begin(struct sl_postgres *p, const struct sl_call *call)
{
    p->deadline_ms = call->deadline_ms;
    sl_arena_reset(p->scratch);
    if (p->is_stale) {
        p->tables = NULL;
        sl_arena_reset(p->known);
        p->is_stale = false;
    }
}

static void postgres_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    struct sl_postgres *p = (struct sl_postgres *)port;
    sl_postgres_begin(p, call);
    struct apply a = {.p = p, .arena = call->arena};
    a.units = sl_arena_zalloc(p->scratch, (n + 1) * sizeof(*a.units));
    struct sl_postgres_step *steps = sl_arena_zalloc(p->scratch, (n + 1) * sizeof(*steps));
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t group = ops[i].group;
        for (end = i + 1; group && end < n && ops[end].group == group;)
            end++;
        for (size_t k = i; k < end; k++) {
            results[k] = (struct sl_result){.status = SL_OK};
            steps[k] = (struct sl_postgres_step){.op = &ops[k], .result = &results[k]};
        }
        a.units[a.n] = (struct unit){.steps = &steps[i], .n = end - i, .state = WRITE};
        check_unit(&a, &a.units[a.n++]);
    }
    chain_units(&a);
    run_units(&a);
    if (p->connection && PQtransactionStatus(p->connection) != PQTRANS_IDLE)
        sl_postgres_disconnect(p);
}

/* ---- the port ---- */

static void postgres_close(struct sl_table_port *port)
{
    struct sl_postgres *p = (struct sl_postgres *)port;
    if (!p)
        return;
    sl_postgres_disconnect(p);
    sl_buffer_clean_up(&p->key);
    sl_arena_destroy(p->scratch);
    sl_arena_destroy(p->known);
    sl_arena_destroy(p->lasting);
    free(p);
}

enum sl_status sl_postgres_open(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                struct sl_error *error)
{
    struct sl_postgres *p = calloc(1, sizeof(*p));
    if (!p)
        sl_die("out of memory");
    p->port = (struct sl_table_port){.size = sizeof(p->port),
                                     .max_item_bytes = SL_ITEM_BYTES,
                                     .apply = postgres_apply,
                                     .close = postgres_close,
                                     .scan = sl_postgres_scan,
                                     .describe = sl_postgres_describe,
                                     .can = SL_TABLE_ALL};
    p->sinks = sinks;
    p->clock = sinks->clock;
    p->lasting = sl_arena_new(4096);
    p->known = sl_arena_new(4096);
    p->scratch = sl_arena_new(64 * 1024);
    sl_arena_keep_secret(p->lasting);
    sl_buffer_init(&p->key, 6 * (2 * SL_PARTITION_KEY_BYTES + 2 * 255) + 64);
    if (sl_postgres_read_target(sinks, url, p->lasting, &p->target, error) != SL_OK) {
        postgres_close(&p->port);
        return SL_FATAL;
    }
    *out = &p->port;
    return SL_OK;
}
