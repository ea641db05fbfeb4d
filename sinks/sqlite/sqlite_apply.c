/* An apply is one SQLite transaction, with a savepoint for each group. */
#include "sinks/result.h"
#include "sinks/sqlite/sqlite_private.h"

/* One operation on its way. */
struct step {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span key; /* its text */
    struct sl_sqlite_table *table;
    struct sl_span item; /* as it is in the table, absent when there is none */
};

/* ---- one operation ---- */

static struct sl_span table_of(const struct sl_sqlite *p, const struct sl_table_op *op)
{
    return op->table.ptr ? op->table : sl_span_str(p->own);
}

/* What the service checks of a whole item. */
static enum sl_status check_item(const struct sl_table_op *op, struct sl_error *error)
{
    if (sl_item_read(op->item, error) != SL_OK || sl_item_has_key(op->item, op->key, error) != SL_OK ||
        sl_item_check(op->item, error) != SL_OK)
        return SL_REJECT;
    return sl_table_check_bytes(op->item, error);
}

static enum sl_status check_op(struct sl_sqlite *p, struct step *step, struct sl_error *error)
{
    const struct sl_table_op *op = step->op;
    if (op->table.ptr && !sl_table_is_name(op->table, 1))
        return sl_fail(error, SL_REJECT, "ValidationException", "\"%.*s\" is not a table name",
                       SL_ARG(op->table));
    sl_buffer_reset(&p->key);
    if (sl_table_key_text(op->key, &p->key, error) != SL_OK || sl_table_check_verb(op, error) != SL_OK)
        return SL_REJECT;
    step->key = sl_span(sl_arena_copy(p->scratch, sl_buffer_span(&p->key)), p->key.len);
    return op->verb == SL_TABLE_PUT ? check_item(op, error) : SL_OK;
}

/* Reads the item as it is; false when the database failed. */
static bool read_item(struct sl_sqlite *p, struct step *step)
{
    sqlite3_stmt *get = step->table->get;
    if (!sl_sqlite_bind(p, get, 1, step->key))
        return false;
    int code = sqlite3_step(get);
    bool is_good = sl_sqlite_done_or_failed(p, code == SQLITE_ROW || code == SQLITE_DONE);
    if (code == SQLITE_ROW) {
        const struct sl_sqlite_row row = {step->table, get, 0};
        is_good = sl_sqlite_take_item(p, &row, p->scratch, &step->item);
    }
    sqlite3_reset(get);
    return is_good;
}

static bool step_to_end(struct sl_sqlite *p, sqlite3_stmt *statement)
{
    bool is_done = sl_sqlite_done_or_failed(p, sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
    return is_done;
}

static bool write_item(struct sl_sqlite *p, struct step *step, struct sl_span item)
{
    sqlite3_stmt *put = step->table->put;
    return sl_sqlite_bind(p, put, 1, step->key) && sl_sqlite_bind(p, put, 2, item) && step_to_end(p, put);
}

static bool remove_item(struct sl_sqlite *p, struct step *step)
{
    sqlite3_stmt *remove = step->table->remove;
    return sl_sqlite_bind(p, remove, 1, step->key) && step_to_end(p, remove);
}

/* Refused because of what the table holds: that may be taken back, and the refusal with it. */
static bool refuse(struct step *step, struct sl_arena *arena, const struct sl_error *error)
{
    sl_result_refuse(step->result, arena, error);
    step->result->not_sent = false;
    return true;
}

static bool update_item(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_span item = step->item.ptr ? step->item : step->op->key;
    if (sl_item_update(step->op, item, p->scratch, &item, &error) == SL_OK &&
        sl_table_check_bytes(item, &error) == SL_OK)
        return write_item(p, step, item);
    return refuse(step, arena, &error);
}

/* Tests, then reads or writes; false when the database failed. */
static bool carry_out(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
{
    const struct sl_table_op *op = step->op;
    struct sl_error error = SL_NO_ERROR;
    bool holds = true;
    if (sl_item_test(op, step->item, &holds, &error) != SL_OK)
        return refuse(step, arena, &error);
    if (!holds) {
        sl_table_condition_failed(step->result, arena, op, step->item);
        return true;
    }
    switch (op->verb) {
    case SL_TABLE_GET:
    case SL_TABLE_PEEK:
        if (step->item.ptr)
            step->result->item = sl_span(sl_arena_copy(arena, step->item), step->item.len);
        return true;
    case SL_TABLE_PUT:
        return write_item(p, step, op->item);
    case SL_TABLE_DELETE:
        return remove_item(p, step);
    case SL_TABLE_UPDATE:
        return update_item(p, step, arena);
    case SL_TABLE_CHECK:
        return true;
    }
    return true;
}

static bool run_step(struct sl_sqlite *p, struct step *step, struct sl_arena *arena)
{
    step->table = sl_sqlite_table(p, table_of(p, step->op));
    return step->table && read_item(p, step) && carry_out(p, step, arena);
}

/* ---- units: one operation, or a whole group ---- */

struct unit {
    struct step *steps;
    struct sl_result *results;
    size_t n;
    struct sl_arena *arena;
};

static bool check_group(const struct sl_sqlite *p, const struct unit *unit)
{
    struct sl_span *keys = sl_arena_alloc(p->scratch, unit->n * sizeof(*keys));
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_span table = table_of(p, unit->steps[i].op), key = unit->steps[i].key;
        const char *text = sl_arena_printf(p->scratch, "%.*s%.*s", SL_ARG(table), SL_ARG(key));
        keys[i] = sl_span(text, table.len + key.len);
    }
    return sl_table_group_check(&(struct sl_table_group){
        .keys = keys, .results = unit->results, .n = unit->n, .target = p->path, .arena = unit->arena});
}

/* Whether the unit can be carried out; if not, its results say why. */
static bool check_unit(struct sl_sqlite *p, const struct unit *unit)
{
    for (size_t i = 0; i < unit->n; i++) {
        struct sl_error error = SL_NO_ERROR;
        if (check_op(p, &unit->steps[i], &error) != SL_OK)
            sl_result_refuse(&unit->results[i], unit->arena, &error);
    }
    return unit->steps[0].op->group ? check_group(p, unit) : unit->results[0].status == SL_OK;
}

/* What was carried out of a group in which something was refused is taken back. Returns whether something
 * was. */
static bool cancel_rest(const struct sl_sqlite *p, const struct unit *unit)
{
    bool any_refused = false;
    for (size_t i = 0; i < unit->n; i++)
        any_refused = any_refused || unit->results[i].status != SL_OK;
    for (size_t i = 0; i < unit->n && any_refused; i++)
        if (unit->results[i].status == SL_OK)
            sl_table_cancel(&unit->results[i], unit->arena, p->path, SL_REJECT);
    return any_refused;
}

/* A unit that is refused is rolled back alone. False when the database failed. */
static bool run_unit(struct sl_sqlite *p, const struct unit *unit)
{
    sl_arena_reset(p->scratch);
    if (!check_unit(p, unit))
        return true;
    if (!sl_sqlite_run(p, "SAVEPOINT unit"))
        return false;
    for (size_t i = 0; i < unit->n; i++)
        if (!run_step(p, &unit->steps[i], unit->arena))
            return false;
    if (cancel_rest(p, unit)) {
        if (!sl_sqlite_run(p, "ROLLBACK TO unit"))
            return false;
        sl_sqlite_forget_tables(p, false);
    }
    return sl_sqlite_run(p, "RELEASE unit");
}

/* ---- apply: one transaction ---- */

static bool run_all(struct sl_sqlite *p, struct step *steps, struct sl_result *results, size_t n,
                    struct sl_arena *arena)
{
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t group = steps[i].op->group;
        for (end = i + 1; group && end < n && steps[end].op->group == group;)
            end++;
        if (!run_unit(p, &(struct unit){&steps[i], &results[i], end - i, arena}))
            return false;
    }
    return true;
}

/* Nothing of this apply stays. A condition may have failed because of a write that is taken back, so that
 * answer does not count either; only what was refused before it was looked at is. */
static void take_back(struct sl_sqlite *p, struct sl_result *results, size_t n, struct sl_arena *arena)
{
    struct sl_result failure;
    sl_result_fail(&failure, arena, p->failure.status, sl_arena_copy(arena, sl_span_str(p->failure.code)),
                   "%s", p->failure.text);
    for (size_t i = 0; i < n; i++)
        if (!results[i].not_sent)
            results[i] = failure;
    if (!sqlite3_get_autocommit(p->db)) /* SQLite ends the transaction by itself after some failures */
        (void)sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
    sl_sqlite_forget_tables(p, true);
}

void sl_sqlite_apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                     struct sl_result *results, const struct sl_call *call)
{
    struct sl_sqlite *p = (struct sl_sqlite *)port;
    sl_sqlite_begin(p, call);
    struct step *steps = sl_arena_zalloc(call->arena, n * sizeof(*steps));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        steps[i] = (struct step){.op = &ops[i], .result = &results[i]};
    }
    if (sl_sqlite_run(p, "BEGIN IMMEDIATE") && run_all(p, steps, results, n, call->arena) &&
        sl_sqlite_run(p, "COMMIT"))
        sl_sqlite_keep_tables(p);
    else
        take_back(p, results, n, call->arena);
}
