/* `sluice verify` and `sluice repair` of a view: whatever happened to its rows and lists is found, and one
 * repair sets it right, so that later changes are exact again. */
#include "tests/support/tables.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define VIEW(list)                                                                                           \
    "{'name':'v','handler':'view','to':'sqlite:${DIR}/out.db?table=view','each':'lines[*]','key':{'PK':"     \
    "'P#{each.sku}','SK':'O#{PK|key}#{each.id|key}'},'item':{'qty':'{each.qty}'}" list "}"

/* The table of the lists. */
static const struct {
    const char *route, *lists;
} views[] = {{VIEW(""), "view"}, {VIEW(",'list':{'table':'lists'}"), "lists"}};

static const char *line(const char *id, const char *sku, int qty)
{
    return json_printf("{'M':{'id':{'S':'%s'},'sku':{'S':'%s'},'qty':{'N':'%d'}}}", id, sku, qty);
}

static const char *lines(const char *a, const char *b, const char *c)
{
    return json_printf("'lines':{'L':[%s%s%s%s%s]}", a, *b ? "," : "", b, *c ? "," : "", c);
}

/* Four orders of three lines. */
static struct tables *of_orders(size_t view)
{
    struct tables *t = tables_new(views[view].route);
    for (int i = 0; i < 4; i++)
        tables_put(t, json_printf("o%d", i), lines(line("a", "X", i), line("b", "Y", 1), line("c", "X", 2)));
    tables_verb(t, 0, "result: 4 equal, 0 different, 0 pending, 0 unsettled, 0 not comparable\n", "verify");
    return t;
}

#define LIST_OF(id) "item LIKE '%sluice_rows%' AND item LIKE '%\"PK\":{\"S\":\"" id "\"}%'"
#define ROW_OF(id)  "key LIKE '%O#" id "\"%'"

/* Each hurts one row or several; LISTS is the table of the lists. */
static const struct damage {
    const char *sql, *found[3];
    bool removes; /* the repair has to remove something */
    bool is_left; /* it cannot be repaired */
} damages[] = {
    {"DELETE FROM view WHERE " ROW_OF("o1#b"), {"v: missing {\"PK\":{\"S\":\"o1\"}}\n"}, false, false},
    {"UPDATE view SET item = replace(item, '\"N\":\"2\"', '\"N\":\"9\"') WHERE " ROW_OF("o2#c"),
     {"v: different {\"PK\":{\"S\":\"o2\"}} in qty"},
     false,
     false},
    {"DELETE FROM LISTS WHERE " LIST_OF("o1"), {"v: missing {\"PK\":{\"S\":\"o1\"}}\n"}, false, false},
    {"DELETE FROM LISTS WHERE " LIST_OF("o1") "; DELETE FROM view WHERE " ROW_OF(
         "o1#b") "; DELETE FROM view WHERE " ROW_OF("o1#a"),
     {"v: missing {\"PK\":{\"S\":\"o1\"}}\n"},
     false,
     false},
    {"UPDATE LISTS SET item = json_remove(item, '$.sluice_rows.L[1]') WHERE " LIST_OF("o3"),
     {"v: stale {\"PK\":{\"S\":\"o3\"}} in sluice_rows"},
     false,
     false},
    {"INSERT INTO view SELECT replace(key, 'O#o1#b', 'O#o1#z'), replace(item, 'O#o1#b', 'O#o1#z') FROM view "
     "WHERE " ROW_OF("o1#b"),
     {"v: left over {\"PK\":{\"S\":\"o1\"}}\n"},
     true,
     false},
    {"INSERT INTO view SELECT replace(key, 'O#o1#b', 'O#gone#b'), replace(replace(item, 'O#o1#b', "
     "'O#gone#b'), '\"o1\"', '\"gone\"') FROM view WHERE " ROW_OF("o1#b"),
     {"v: left over {\"PK\":{\"S\":\"gone\"}}\n"},
     true,
     false},
    {"UPDATE view SET item = replace(item, '\"view\":{\"S\":\"v\"}', '\"view\":{\"S\":\"w\"}') WHERE " ROW_OF(
         "o1#b"),
     {"v: collision {\"PK\":{\"S\":\"o1\"}}"},
     false,
     true},
    /* Of three rows that the list's repair puts the second stands in the way. */
    {"DELETE FROM LISTS WHERE " LIST_OF(
         "o1") "; UPDATE view SET item = replace(item, '\"view\":{\"S\":\"v\"}', "
               "'\"view\":{\"S\":\"w\"}') WHERE " ROW_OF("o1#b"),
     {"v: missing {\"PK\":{\"S\":\"o1\"}}\n"},
     false,
     true},
};

static void damage(struct tables *t, size_t view, const struct damage *d)
{
    char sql[1024] = "";
    for (const char *p = d->sql, *end; *p; p = end) {
        size_t len = strlen(sql);
        bool is_lists = strncmp(p, "LISTS", 5) == 0;
        end = p + (is_lists ? 5 : 1);
        snprintf(sql + len, sizeof(sql) - len, "%.*s", is_lists ? 8 : 1, is_lists ? views[view].lists : p);
    }
    assert_true(tables_sql(t, "out.db", "%s", sql) > 0);
}

/* The item changes once more, and its rows are those of the change. */
static void is_exact_again(struct tables *t)
{
    tables_verb(t, 0, "result: 4 equal, 0 different", "verify");
    for (int i = 0; i < 4; i++)
        tables_put(t, json_printf("o%d", i), lines(line("b", "Z", 1), line("d", "X", 2), ""));
    tables_verb(t, 0, "result: 4 equal, 0 different", "verify");
    assert_string_equal(
        tables_rows(t, "out.db", "SELECT count(*) FROM view WHERE item NOT LIKE '%sluice_rows%'"), "8\n");
}

static void every_damage_is_found_and_repaired(void **state)
{
    (void)state;
    for (size_t view = 0; view < 2; view++)
        for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
            const struct damage *d = &damages[i];
            struct tables *t = of_orders(view);
            damage(t, view, d);
            tables_verb(t, 1, d->found[0], "verify");
            tables_verb(t, 1,
                        d->is_left   ? "would be left (Collision: "
                        : d->removes ? "would be removed\n"
                                     : "would be written\n",
                        "repair --dry-run --delete");
            if (d->removes)
                tables_verb(t, 1, "(WouldRemove: ", "repair");
            tables_verb(t, d->is_left, d->is_left ? "(Collision: " : "0 moved, 0 left, 0 failed", "repair%s",
                        d->removes ? " --delete" : "");
            if (!d->is_left)
                is_exact_again(t);
            tables_destroy(t);
        }
}

/* What the stream did not tell: an element that came, one that went, one that changed; an item that went. */
static void what_the_routes_did_not_hear_is_found_and_repaired(void **state)
{
    (void)state;
    for (size_t view = 0; view < 2; view++) {
        struct tables *t = of_orders(view);
        tables_put_unseen(t, "o1", lines(line("a", "X", 7), line("n", "Y", 1), line("c", "X", 2)));
        tables_verb(t, 1, "v: missing {\"PK\":{\"S\":\"o1\"}}\n", "verify");
        tables_verb(t, 1, "v: stale {\"PK\":{\"S\":\"o1\"}} in qty", "verify");
        tables_verb(t, 1, "v: left over {\"PK\":{\"S\":\"o1\"}}\n", "verify");
        tables_verb(t, 0, "0 moved, 0 left, 0 failed", "repair --delete");
        tables_verb(t, 0, "result: 4 equal, 0 different", "verify");
        tables_sql(t, "src.db", "DELETE FROM orders WHERE key LIKE '%%o2%%'");
        tables_verb(t, 1, "v: left over {\"PK\":{\"S\":\"o2\"}}\n", "verify");
        tables_verb(t, 1, "(WouldRemove: ", "repair");
        tables_verb(t, 0, "0 moved, 0 left, 0 failed", "repair --delete");
        tables_verb(t, 0, "result: 3 equal, 0 different", "verify");
        assert_string_equal(tables_rows(t, "out.db", "SELECT count(*) FROM view WHERE key LIKE '%O#o2%'"),
                            "0\n");
        tables_destroy(t);
    }
}

/* Rows of users, of another view, and empty lists are nobody's fault. */
static void what_is_not_the_views_is_left_alone(void **state)
{
    (void)state;
    struct tables *t = of_orders(0);
    tables_remove(t, "o3");
    tables_sql(t, "out.db",
               "INSERT INTO view VALUES ('{\"PK\":{\"S\":\"u\"},\"SK\":{\"S\":\"u\"}}', "
               "'{\"PK\":{\"S\":\"u\"},\"SK\":{\"S\":\"u\"}}'); INSERT INTO view SELECT replace(key, 'O#o1', "
               "'W#o1'), replace(replace(item, 'O#o1', 'W#o1'), '\"view\":{\"S\":\"v\"}', "
               "'\"view\":{\"S\":\"other\"}') FROM view WHERE key LIKE '%%O#o1%%'");
    tables_verb(t, 0, "result: 3 equal, 0 different, 0 pending, 0 unsettled, 0 not comparable\n", "verify");
    tables_verb(t, 0, "repaired: 0 written, 0 removed", "repair --delete");
    tables_destroy(t);
}

/* Only a record shows that two items could make one row. */
static void a_key_that_is_not_unique_is_not_compared(void **state)
{
    (void)state;
    struct tables *t = of_orders(0);
    test_write(t->s->config_path,
               json("{'on_failure':'report','routes':[{'name':'v','handler':'view','to':'sqlite:"
                    "${DIR}/out.db?table=view','key':{'PK':'{n}','SK':'x'}}]}"));
    tables_run(t, "verify");
    if (!strstr(verb_err(t->v), "key: no template has a place {PK}") &&
        !strstr(verb_out(t->v), "key: no template has a place {PK}"))
        fail_msg("%s%s", verb_out(t->v), verb_err(t->v));
    assert_null(strstr(verb_out(t->v), "4 not comparable"));
    tables_destroy(t);
}

/* The same view, filled from the items alone. */
static void a_backfill_makes_the_same_rows(void **state)
{
    (void)state;
    for (size_t view = 0; view < 2; view++) {
        struct tables *t = of_orders(view);
        const char *sql = "SELECT item FROM view WHERE item NOT LIKE '%sluice_rows%' ORDER BY key";
        const char *before = tables_rows(t, "out.db", sql);
        tables_sql(t, "out.db", "DELETE FROM view");
        if (view)
            tables_sql(t, "out.db", "DELETE FROM lists");
        verb_assert(t->v,
                    verb(t->v, "backfill --config %s --table sqlite:%s/src.db?table=orders --unsafe-order",
                         t->s->config_path, t->s->folder),
                    0, "");
        tables_verb(t, 0, "result: 4 equal, 0 different", "verify");
        assert_string_equal(before, tables_rows(t, "out.db", sql));
        is_exact_again(t);
        tables_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_damage_is_found_and_repaired),
        cmocka_unit_test(what_the_routes_did_not_hear_is_found_and_repaired),
        cmocka_unit_test(what_is_not_the_views_is_left_alone),
        cmocka_unit_test(a_key_that_is_not_unique_is_not_compared),
        cmocka_unit_test(a_backfill_makes_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
