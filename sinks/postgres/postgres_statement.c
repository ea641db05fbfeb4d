/* Operations as SQL. Names of attributes and all values are parameters; only names of tables and columns are
 * in the text.
 *
 * A test is a condition on the row that is there. Whether it holds when there is none is known before, so a
 * PUT is either an INSERT that becomes an UPDATE of a row that it meets, or an UPDATE alone; both look again
 * at a row that somebody else has just changed (READ COMMITTED waits for him, and tests his row). */
#include "base/array.h"
#include "base/json_walk.h"
#include "sinks/postgres/postgres_private.h"
#include "streams/value.h"

struct making {
    struct sl_postgres *p;
    const struct sl_postgres_step *step;
    struct sl_buffer sql;
    struct sl_postgres_param *params;
    int n;
};

static struct making begin(struct sl_postgres *p, const struct sl_postgres_step *step)
{
    struct making m = {.p = p, .step = step};
    size_t room = step->table->n_keys + 2 + step->table->n_columns + 3 * step->op->n_tests;
    m.params = sl_arena_alloc(p->scratch, room * sizeof(*m.params));
    sl_buffer_init_in(&m.sql, p->scratch, 1024 * 1024);
    return m;
}

static struct sl_postgres_statement end(struct making *m)
{
    sl_buffer_add_char(&m->sql, '\0');
    return (struct sl_postgres_statement){.sql = m->sql.ptr, .params = m->params, .n_params = m->n};
}

static int add_param(struct making *m, struct sl_postgres_param param)
{
    m->params[m->n] = param;
    return ++m->n;
}

static int add_text(struct making *m, struct sl_span text)
{
    return add_param(m, (struct sl_postgres_param){sl_arena_copy(m->p->scratch, text), 0});
}

static void add(struct making *m, const char *text)
{
    sl_buffer_add_str(&m->sql, text);
}

/* ---- conditions ---- */

static void add_key(struct making *m)
{
    const struct sl_postgres_table *table = m->step->table;
    static const char *const casts[] = {['S'] = "text", ['N'] = "numeric", ['B'] = "bytea"};
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(&m->sql, "%st.%s = $%d::%s", i ? " AND " : "", table->keys[i].quoted,
                         add_param(m, m->step->key_params[i]), casts[(unsigned char)table->keys[i].type]);
}

static const char *sign_of(enum sl_test_verb verb)
{
    return verb == SL_LT ? "<" : verb == SL_LE ? "<=" : ">";
}

/* Values of one type only: of another there is nothing at the tag, and NULL is not true. */
static void add_comparison(struct making *m, const struct sl_test *test, int name)
{
    struct sl_value value = sl_value_read(test->value);
    struct sl_span text = value.type == SL_S   ? sl_value_text(value, m->p->scratch)
                          : value.type == SL_N ? sl_value_text(value, m->p->scratch)
                                               : sl_value_bytes(value, m->p->scratch);
    const char *sign = sign_of(test->verb);
    if (value.type == SL_S && !sl_postgres_is_text(text))
        sl_buffer_printf(&m->sql, "(convert_to(t.item->$%d::text->>'S', 'UTF8') %s $%d::bytea)", name, sign,
                         add_param(m, sl_postgres_bytes(text)));
    else if (value.type == SL_S)
        sl_buffer_printf(&m->sql, "((t.item->$%d::text->>'S') COLLATE \"C\" %s $%d::text COLLATE \"C\")",
                         name, sign, add_text(m, text));
    else if (value.type == SL_N)
        sl_buffer_printf(&m->sql, "((t.item->$%d::text->>'N')::numeric %s $%d::numeric)", name, sign,
                         add_text(m, text));
    else if (value.type == SL_B)
        sl_buffer_printf(&m->sql, "(decode(t.item->$%d::text->>'B', 'base64') %s $%d::bytea)", name, sign,
                         add_param(m, sl_postgres_bytes(text)));
    else
        add(m, "false");
}

/* In canonical form, as the column has it. */
static struct sl_span stored(struct making *m, struct sl_span json)
{
    struct sl_buffer text;
    sl_buffer_init_in(&text, m->p->scratch, 4 * 1024 * 1024);
    sl_value_stored(sl_value_read(json), &text);
    return sl_buffer_span(&text);
}

/* What PostgreSQL's text cannot hold is in no row: neither as a name nor within a value. */
static void add_test(struct making *m, const struct sl_test *test)
{
    if (!sl_postgres_is_text(test->name)) {
        add(m, test->verb == SL_ABSENT ? "true" : "false");
        return;
    }
    bool is_equality = test->verb == SL_EQ || test->verb == SL_NE;
    struct sl_span value = is_equality ? stored(m, test->value) : (struct sl_span){NULL, 0};
    if (is_equality && !sl_postgres_is_json(value) && test->verb == SL_EQ) {
        add(m, "false");
        return;
    }
    int name = add_text(m, test->name);
    if (test->verb == SL_ABSENT)
        sl_buffer_printf(&m->sql, "(NOT t.item ? $%d::text)", name);
    else if (test->verb == SL_PRESENT || (is_equality && !sl_postgres_is_json(value)))
        sl_buffer_printf(&m->sql, "(t.item ? $%d::text)", name);
    else if (is_equality)
        sl_buffer_printf(&m->sql, "(t.item->$%d::text %s $%d::jsonb)", name, test->verb == SL_EQ ? "=" : "<>",
                         add_text(m, value));
    else
        add_comparison(m, test, name);
}

/* Whether the write takes the place of a row with this item alone, NULL for none: what an UPDATE has read, or
 * what the tests were found to hold on. */
static bool is_by_item(const struct sl_postgres_step *step)
{
    return step->op->verb == SL_TABLE_UPDATE || step->is_by_item;
}

/* Whether there may be no row. */
static bool may_be_absent(const struct sl_postgres_step *step)
{
    return is_by_item(step) ? !step->before : step->holds_on_absent;
}

/* " AND (...)" of the operation's tests, or of the item that was read. */
static void add_tests(struct making *m, const char *before)
{
    const struct sl_table_op *op = m->step->op;
    if (is_by_item(m->step)) {
        sl_buffer_printf(&m->sql, "%s(t.item = $%d::jsonb)", before,
                         add_param(m, (struct sl_postgres_param){m->step->before, 0}));
        return;
    }
    for (size_t i = 0; i < op->n_tests; i++) {
        add(m, i == 0 ? before : op->any_test ? " OR " : " AND ");
        if (i == 0)
            add(m, "(");
        add_test(m, &op->tests[i]);
    }
    if (op->n_tests)
        add(m, ")");
}

/* ---- verbs ---- */

struct sl_postgres_statement sl_postgres_read_of(struct sl_postgres *p, const struct sl_postgres_step *step)
{
    struct making m = begin(p, step);
    sl_buffer_printf(&m.sql, "SELECT %s FROM %s t WHERE ", step->table->wanted, step->table->quoted);
    add_key(&m);
    return end(&m);
}

static void add_insert(struct making *m)
{
    const struct sl_postgres_table *table = m->step->table;
    static const char *const casts[] = {['S'] = "text", ['N'] = "numeric", ['B'] = "bytea"};
    sl_buffer_printf(&m->sql, "INSERT INTO %s AS t (", table->quoted);
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(&m->sql, "%s, ", table->keys[i].quoted);
    add(m, "item");
    for (size_t i = 0; i < table->n_columns; i++)
        sl_buffer_printf(&m->sql, ", %s", table->columns[i].quoted);
    add(m, ") VALUES (");
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(&m->sql, "$%d::%s, ", add_param(m, m->step->key_params[i]),
                         casts[(unsigned char)table->keys[i].type]);
    sl_buffer_printf(&m->sql, "$%d::jsonb", add_param(m, m->step->row[0]));
    for (size_t i = 0; i < table->n_columns; i++)
        sl_buffer_printf(&m->sql, ", $%d::%s", add_param(m, m->step->row[1 + i]),
                         sl_postgres_type_name(table->columns[i].type));
    add(m, ") ON CONFLICT (");
    for (size_t i = 0; i < table->n_keys; i++)
        sl_buffer_printf(&m->sql, "%s%s", i ? ", " : "", table->keys[i].quoted);
}

static void add_put(struct making *m)
{
    const struct sl_postgres_table *table = m->step->table;
    if (may_be_absent(m->step) && is_by_item(m->step)) {
        add_insert(m);
        add(m, ") DO NOTHING");
    } else if (may_be_absent(m->step)) {
        add_insert(m);
        add(m, ") DO UPDATE SET item = excluded.item");
        for (size_t i = 0; i < table->n_columns; i++)
            sl_buffer_printf(&m->sql, ", %s = excluded.%s", table->columns[i].quoted,
                             table->columns[i].quoted);
        add_tests(m, " WHERE ");
    } else {
        sl_buffer_printf(&m->sql, "UPDATE %s t SET item = $%d::jsonb", table->quoted,
                         add_param(m, m->step->row[0]));
        for (size_t i = 0; i < table->n_columns; i++)
            sl_buffer_printf(&m->sql, ", %s = $%d::%s", table->columns[i].quoted,
                             add_param(m, m->step->row[1 + i]),
                             sl_postgres_type_name(table->columns[i].type));
        add(m, " WHERE ");
        add_key(m);
        add_tests(m, " AND ");
    }
    add(m, " RETURNING 1");
}

static void add_delete(struct making *m)
{
    sl_buffer_printf(&m->sql, "DELETE FROM %s t WHERE ", m->step->table->quoted);
    add_key(m);
    add_tests(m, " AND ");
    add(m, " RETURNING 1");
}

struct sl_postgres_statement sl_postgres_write_of(struct sl_postgres *p, const struct sl_postgres_step *step)
{
    struct making m = begin(p, step);
    if (step->op->verb == SL_TABLE_DELETE)
        add_delete(&m);
    else
        add_put(&m);
    return end(&m);
}

/* ---- groups ---- */

#define RAISE ") SELECT 1 / count(*) FROM w" /* 22012 when there is no row */

/* A row that nobody has is taken by making it: who makes it too waits for us. Then it is removed. */
static size_t check_of(struct sl_postgres *p, const struct sl_postgres_step *step,
                       struct sl_postgres_statement *out)
{
    struct making m = begin(p, step);
    if (!may_be_absent(step)) {
        sl_buffer_printf(&m.sql, "WITH w AS (SELECT 1 FROM %s t WHERE ", step->table->quoted);
        add_key(&m);
        add_tests(&m, " AND ");
        add(&m, " FOR UPDATE" RAISE);
        out[0] = end(&m);
        return 1;
    }
    static struct sl_postgres_param blank[1 + SL_POSTGRES_COLUMNS] = {{"{}", 0}};
    struct sl_postgres_step taken = *step;
    taken.row = blank;
    m.step = &taken;
    add(&m, "WITH w AS (");
    add_insert(&m);
    add(&m, ") DO UPDATE SET item = t.item");
    add_tests(&m, " WHERE ");
    add(&m, " RETURNING 1" RAISE);
    out[0] = end(&m);
    m = begin(p, step);
    sl_buffer_printf(&m.sql, "DELETE FROM %s t WHERE ", step->table->quoted);
    add_key(&m);
    add(&m, " AND t.item = '{}' RETURNING 1");
    out[1] = end(&m);
    return 2;
}

size_t sl_postgres_group_of(struct sl_postgres *p, const struct sl_postgres_step *step,
                            struct sl_postgres_statement *out)
{
    const struct sl_table_op *op = step->op;
    if (op->verb == SL_TABLE_CHECK)
        return check_of(p, step, out);
    bool is_delete = op->verb == SL_TABLE_DELETE;
    if (is_delete && op->n_tests == 0) {
        out[0] = sl_postgres_write_of(p, step);
        return 1;
    }
    if (is_delete && may_be_absent(step)) {
        out[0] = sl_postgres_write_of(p, step);
        struct making m = begin(p, step);
        sl_buffer_printf(&m.sql, "WITH w AS (SELECT 1 WHERE NOT EXISTS (SELECT FROM %s t WHERE ",
                         step->table->quoted);
        add_key(&m);
        add(&m, ")" RAISE);
        out[1] = end(&m);
        return 2;
    }
    struct making m = begin(p, step);
    add(&m, "WITH w AS (");
    if (is_delete)
        add_delete(&m);
    else
        add_put(&m);
    add(&m, RAISE);
    out[0] = end(&m);
    return 1;
}
