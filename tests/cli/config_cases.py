"""Configurations that cannot work: of each option of the tables in docs/CONFIG.md, which come from the option rows, each wrong
kind of value and each edge; and those that only their meaning makes wrong."""
import copy
import re

ARCHIVE = {"handler": "archive", "to": "s3://bucket/x"}
REPLICATE = {"handler": "replicate", "to": "dynamodb://replica"}
VIEW = {"handler": "view", "to": "dynamodb://view", "key": {"PK": "{PK}"}}
AGGREGATE = {"handler": "aggregate", "to": "dynamodb://totals", "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1}}]}
NOTIFY = {"handler": "notify", "to": "sqs://messages"}
BASES = {"archive": ARCHIVE, "replicate": REPLICATE, "aggregate": AGGREGATE, "view": VIEW, "notify": NOTIFY}


def config(*routes, **top):
    whole = {"on_failure": "sqs://failures", "report_batch_item_failures": True, **top}
    whole["routes"] = [{"name": f"r{i}", **copy.deepcopy(route)} for i, route in enumerate(routes)]
    return {name: value for name, value in whole.items() if value is not ...}


def rows():
    """(section, option, value, default) of every row."""
    with open("docs/CONFIG.md", encoding="utf-8") as f:
        text = f.read()
    for section, table in re.findall(r"<!-- rows: (\w+) -->\n(.*?)<!-- end -->", text, re.S):
        for name, value, default in re.findall(r"^\| `([^`]+)` \| (.*?[^\\]) \| (.*?[^\\]) \| ", table, re.M):
            yield section, name, value.replace("\\|", "|"), default


KINDS = {"text": [3, True, None, [], {}], "integer": ["3", 1.5, True, [], {}, 10 ** 15], "true or false": ["true", 1, None, [], {}],
         "template": [3, None, [], {}, "{x", "{a|nothing}", "x}", "{}"],
         "condition": [3, "x", None, [], {"nothing": 1}, {"events": []}, {"events": "INSERT"}, {"item": {"a": "b"}}, {"item": {"a": [{"prefx": "b"}]}},
                       {"changed": [""]}, {"pattern": {}}, {"expired": False}],
         "object store target": [3, None, [], {}, "", "nothing", "nothing:x", "sqs://q", "dynamodb://table", "s3://", "s3://B A", "file:", "s3://bucket?nothing=1"],
         "table target": [3, None, [], {}, "", "nothing", "nothing:x", "sqs://q", "s3://bucket", "dynamodb://", "dynamodb://a b", "sqlite:x.db", "opensearch://h",
                          "opensearch://h:0/i", "postgres://h/d", "postgres://h?table=t&user=u", "dynamodb://table?nothing=1", "dynamodb://table?region=nowhere!"],
         "queue target": [3, None, [], {}, "", "nothing", "nothing:x", "s3://bucket", "dynamodb://table", "sqs://", "sns:topic", "https://", "https://h:0/",
                          "https://u:p@h/", "http://h/", "stdout:x", "jsonl:", "sqs://q?nothing=1"],
         "JSON": [3, True, None, "nothing", [3], {"": 3}, {"nothing": 3}, {"nothing": {}}, [{}]]}


def wrong_values(value):
    kind = value.split(",")[0]
    for base in (kind, kind.removesuffix(" or null")):
        if base in KINDS:
            yield from KINDS[base]
    if "|" in value:
        yield from ("nothing", "", value.split("|")[0].upper() + "x", value.split("|")[0] + "e", 3, None, [], {})
    found = re.search(r"(-?\d+) to (\d+)", value)
    if found:
        yield from (int(found[1]) - 1, int(found[2]) + 1)
    if kind == "integer" and "null" not in value:
        yield None


def generated():
    """(path, configuration): the path that has to be named."""
    for section, name, value, default in rows():
        if (section, name) == ("top", "routes"):
            continue
        base = BASES.get(section, ARCHIVE)
        is_nested = False
        for wrong in wrong_values(value):
            if section == "top":
                yield f"$.{name}", config(ARCHIVE, **{name: wrong})
            else:
                yield f"$.routes[0].{name}", config({**base, name: wrong})
            if section in BASES and not is_nested:
                rest = {n: v for n, v in base.items() if n != name}
                yield f"$.routes[0].options.{name}", config({**rest, "options": {name: wrong}})
                is_nested = True
        slip = name[:-1] + "x" + name[-1]
        yield (f"$.{slip}", config(ARCHIVE, **{slip: 1})) if section == "top" else (f"$.routes[0].{slip}", config({**base, slip: 1}))
        if default == "required":
            without = config(ARCHIVE if section == "top" else base)
            place = without if section == "top" else without["routes"][0]
            del place[name]
            yield (f"$.{name}" if section == "top" else f"$.routes[0].{name}"), without
        if section in BASES and name in base:
            yield f"$.routes[0].options.{name}", config({**base, "options": {name: base[name]}})


def counter(**members):
    return {**AGGREGATE, "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1}, **members}]}


def sorted_counter(**members):
    return counter(key={"PK": "{a}", "SK": "{b}"}, **members)


def below(route, path, *values):
    """The same wrong path for several values of a route's option; `...` is the value's place."""
    def fill(x, value):
        if x is ...:
            return value
        if isinstance(x, dict):
            return {n: fill(v, value) for n, v in x.items()}
        return [fill(v, value) for v in x] if isinstance(x, list) else x
    return [(path, config(fill(route, value))) for value in values]


R, C = "$.routes[0]", "$.routes[0].counters[0]"
REFUSED = [
    *below(counter(add={"n": ...}), f"{C}.add.n", "x", "", "x{t}", "{t}x", "1 {t}", 1.5, True, None, [], {}, "{t", "1,5", "0x10", "1e400"),
    *below(counter(running_max={"n": ...}), f"{C}.running_max.n", "x", "", True, [], "{"),
    *below(counter(running_min={"n": ...}), f"{C}.running_min.n", "x", None),
    *below(counter(add=...), f"{C}.add", [], 3, "x", None, {"": 1}, {'a"b': 1}, {}),
    *below(counter(key=...), f"{C}.key", 3, None, [], "x", {}, {"": "{a}"}, {"a": "{a}", "b": "{a}", "c": "{a}"}, {'a"': "{a}"}),
    *below(counter(key={"PK": ...}), f"{C}.key.PK", 3, None, [], "", "{", "{NewImage.a}", "{a|nothing}"),
    *below(counter(where=...), f"{C}.where", 3, "x", [], None, {}),
    *below(counter(where={"a": ...}), f"{C}.where.a", 3, "x", [], {"S": ["x"]}, None),
    *below(counter(where={"a": [...]}), f"{C}.where.a[0]", {"prefx": "x"}, {"prefix": 3}, {"numeric": [">"]}, {}, []),
    *below(counter(when=...), f"{C}.when", 3, "x", [], None, {}),
    *below(counter(when={"a": ...}), f"{C}.when.a", 1, "x", [], None, {}),
    *below(counter(when={"a": {"S": [...]}}), f"{C}.when.a.S[0]", {"prefx": "x"}, {"prefix": 3}, []),
    *below(counter(distinct=...), f"{C}.distinct", 3, [], "x", None, {}, {"": "{a}"}),
    *below(counter(distinct={"d": ...}), f"{C}.distinct.d", "x", "", 3, None, "{a", []),
    *below(sorted_counter(members=...), f"{C}.members", 3, [], {}, {"by": 1, "x": 1}, "x", None),
    *below(sorted_counter(members={"by": ...}), f"{C}.members.by", "x", True, None, "{a"),
    *below(counter(members={"by": "{a}"}), f"{C}.members", 1),
    *below(counter(nothing=...), f"{C}.nothing", 1),
    *below({**AGGREGATE, "counters": ...}, f"{R}.counters", [], {}, 3, None, "x"),
    *below({**AGGREGATE, "counters": [...]}, C, 3, None, [], "x"),
    *below({**AGGREGATE, "ledger": ...}, f"{R}.ledger", 3, [], "x", None),
    *below({**AGGREGATE, "ledger": {"table": ...}}, f"{R}.ledger.table", 3, "", None, [], 'a"b'),
    *below({**AGGREGATE, "ledger": {"key": "PK"}}, f"{R}.ledger.key", 1),
    *below({**AGGREGATE, "ledger": {"nothing": "x"}}, f"{R}.ledger.nothing", 1),
    *below({**AGGREGATE, "empty": "delete", "shards": 3}, f"{R}.empty", 1),
    *below({**counter(add={"n": 2}), "empty": "delete"}, f"{R}.empty", 1),
    *below({**AGGREGATE, "to": "opensearch://h/i"}, f"{R}.to", 1),
    *below({**VIEW, "key": ...}, f"{R}.key", 3, [], {}, "x", None, {"a": "{a}", "b": "{b}", "c": "{c}"}),
    *below({**VIEW, "key": {"PK": ...}}, f"{R}.key.PK", 3, None, [], "", "{", "{yyyy}", "{OldImage.a}", "{table}", "{a|nothing}", "{a}#{b}", "{a|key}{b|key}",
           "{a|key}-{b|key}", "{a|key|lower}#{b|key}"),
    *below({**VIEW, "key": {"PK": "{PK}", "SK": "{n|number}"}}, f"{R}.key.SK", 1),
    *below({**VIEW, "key": {"sluice_of": "{PK}"}}, f"{R}.key", 1),
    *below({**VIEW, "item": {"a": "{a}"}, "each": ...}, f"{R}.each", 3, [], "", "a", "[*]", "a[*].b[*]", "a[0][*]", "a..b[*]", "a[*][*]"),
    *below({**VIEW, "each": "a[*]"}, f"{R}.item", 1),
    *below({**VIEW, "item": ...}, f"{R}.item", 3, [], {}, "x", None),
    *below({**VIEW, "item": {"a": ...}}, f"{R}.item.a", 3, None, "{", "{yyyy}", "{OldImage.a}", "{table}", "{a|nothing}"),
    *below({**VIEW, "item": {"PK": "x"}}, f"{R}.item.PK", 1),
    *below({**VIEW, "item": {"sluice_rows": "x"}}, f"{R}.item", 1),
    *below({**VIEW, "item": {"a": "x"}, "drop": ["b"]}, f"{R}.drop", 1),
    *below({**VIEW, "set": {"a": ...}}, f"{R}.set.a", 3, None, "{", "{yyyy}"),
    *below({**VIEW, "where": {"a": [...]}}, f"{R}.where.a[0]", {"prefx": "x"}, [], {}),
    *below({**VIEW, "list": ...}, f"{R}.list", 3, [], "x", None, True),
    *below({**VIEW, "list": False, "each": ..., "item": {"a": "x"}}, f"{R}.list", "a[*]"),
    *below({**VIEW, "list": False, "expired": ...}, f"{R}.expired", "keep", "keep-any"),
    *below({**VIEW, "list": {"table": ...}}, f"{R}.list.table", 3, "", None, [], 'a"b', "view"),
    *below({**VIEW, "list": {"key": "PK"}}, f"{R}.list.key", 1),
    *below({**VIEW, "list": {"nothing": "x"}}, f"{R}.list.nothing", 1),
    *below({**VIEW, "expires_attribute": ...}, f"{R}.expires_attribute", "", 3, "sluice_of"),
    *below({**VIEW, "to": "opensearch://h/i", "each": "a[*]", "item": {"a": "x"}}, f"{R}.to", 1),
    *below({**VIEW, "to": "opensearch://h/i", "list": {"table": "l"}}, f"{R}.list.table", 1),
    *below({**REPLICATE, "guard": ...}, f"{R}.guard", "inlin", 3, None, [], True, ""),
    *below({**REPLICATE, "guard": {"table": ...}}, f"{R}.guard.table", "", 3, None, "replica"),
    *below({**REPLICATE, "guard": {}}, f"{R}.guard.table", 1),
    *below({**REPLICATE, "guard": {"table": "g", "key": ...}}, f"{R}.guard.key", "", 3, 'a"b'),
    *below({**REPLICATE, "guard": {"table": "g", "nothing": "x"}}, f"{R}.guard.nothing", 1),
    *below({**REPLICATE, "guard": "none", "tombstones": {"table": "t"}}, f"{R}.tombstones", 1),
    *below({**REPLICATE, "tombstones": ...}, f"{R}.tombstones", "none", 3, None),
    *below({**REPLICATE, "project": ...}, f"{R}.project", {}, 3, "a", None),
    *below({**REPLICATE, "project": [...]}, f"{R}.project[0]", "", 3, None, {}),
    *below({**REPLICATE, "drop": [...]}, f"{R}.drop[0]", "", 3, ".a", "a.", "a[0]", "a[*]", "$.a", "[*]", "`a", "a..b"),
    *below({**REPLICATE, "rename": ...}, f"{R}.rename", 3, [], "a", None),
    *below({**REPLICATE, "rename": {"a": ...}}, f"{R}.rename.a", "", 3, None, 'b"', "sluice_order"),
    *below({**REPLICATE, "rename": {"a": "c", "b": "c"}}, f"{R}.rename", 1),
    *below({**REPLICATE, "rename": {"a": "c"}, "drop": ["a"]}, f"{R}.rename.a", 1),
    *below({**REPLICATE, "set": ...}, f"{R}.set", 3, [], {}, "x", None),
    *below({**REPLICATE, "set": {"a": ...}}, f"{R}.set.a", 3, None, "{", "{yyyy}", "{OldImage.a}", "{table}", "{a|nothing}"),
    *below({**REPLICATE, "set": {"sluice_order": "{a}"}}, f"{R}.set.sluice_order", 1),
    *below({**REPLICATE, "where": ...}, f"{R}.where", 3, "x", [], None, {}, True),
    *below({**REPLICATE, "where": {"a": [...]}}, f"{R}.where.a[0]", {"prefx": "x"}, [], {}),
    *below({**REPLICATE, "where": {"a": {"b": [...]}}}, f"{R}.where.a.b[0]", {"prefx": "x"}, {"cidr": "x"}),
    *below({**REPLICATE, "key": ...}, f"{R}.key", 3, [], {}, "x", None, {"a": "x"}, {"a": "x", "b": "y"}, {"a": "{a}", "b": "{b}", "c": "{c}"}),
    *below({**REPLICATE, "key": {"a": ...}}, f"{R}.key.a", 3, "", None, "{", "{NewImage.a}"),
    *below({**REPLICATE, "guard_attribute": ...}, f"{R}.guard_attribute", "", 'a"b', "a\\b"),
    *below({**REPLICATE, "write_attribute": "sluice_order"}, f"{R}.write_attribute", 1),
    *below({**REPLICATE, "source": "dynamodb://replica"}, f"{R}.source", 1),
    *below({**NOTIFY, "message": ...}, f"{R}.message", "", "{", "{a|hmac:no-name}"),
    *below({**NOTIFY, "subject": ...}, f"{R}.subject", "", "{"),
    *below({**NOTIFY, "to": "sqs://q.fifo", "dedupe": ...}, f"{R}.dedupe", "x", "", "{"),
    *below({**NOTIFY, "to": "sqs://q.fifo", "group": ...}, f"{R}.group", "", "{"),
    *below({**NOTIFY, "attributes": ...}, f"{R}.attributes", 3, [], "x", None, {"": "x"}, {"a b": "x"}, {"AWS.x": "x"}, {"a..b": "x"}, {".a": "x"}, {"x" * 257: "x"}),
    *below({**NOTIFY, "attributes": {"a": ...}}, f"{R}.attributes.a", 3, None, "{", []),
    *below({**ARCHIVE, "key": ...}, f"{R}.key", "{", "{a|nothing}"),
    *below({**ARCHIVE, "on_failure": ...}, f"{R}.on_failure", 3, "", None, {}, [], "dynamodb://t", "nothing:x"),
    *below({**ARCHIVE, "on_failure": [...]}, f"{R}.on_failure[0]", 3, "", None, "report", "dynamodb://table", "nothing:x"),
    *below({**ARCHIVE, "on_failure": ["sqs://q", ...]}, f"{R}.on_failure[1]", "", "report", "dynamodb://table", "s3://A"),
    *below({**ARCHIVE, "options": ...}, f"{R}.options", 3, [], None, "x"),
    *below({**ARCHIVE, "name": ...}, f"{R}.name", "", "a b", "x" * 65, "é"),
    *below({**ARCHIVE, "handler": ...}, f"{R}.handler", "", "a b", "../x", "nowhere"),
    (f"{R}.on_failure", config(ARCHIVE, on_failure=...)),
    ("$.routes[1].on_failure", config({**ARCHIVE, "on_failure": "report"}, ARCHIVE, on_failure=...)),
    ("$.routes[1].name", config({**ARCHIVE, "name": "a"}, {**ARCHIVE, "name": "a"})),
    *[("$.trace", config(NOTIFY, trace=path)) for path in ("", ".", "a.", "a[x]", "`a")],
    *[("$.trace", config(NOTIFY, trace="a.traceparent", view_type=view)) for view in ("KEYS_ONLY", "OLD_IMAGE")],
    *[("$.trace_to", config(NOTIFY, trace_to=to)) for to in ("", "nothing", "sqs://q", "s3://b", "kinesis://s", "https://xray.eu-west-1.amazonaws.com/v1/traces", "xray://x", "xray:?regoin=eu-west-1", "http://h/v1/traces", "jsonl:")],
    ("$.ttl_attribute", config(ARCHIVE, ttl_attribute="")), (f"{R}.level", config({**ARCHIVE, "level": 6.0})),
    ("$.routes", {"on_failure": "report", "routes": []}), ("$.routes", {"on_failure": "report", "routes": {}}), ("$.routes", {"on_failure": "report", "routes": 3}),
    (f"{R}", {"on_failure": "report", "routes": [3]}), (f"{R}", {"on_failure": "report", "routes": [[]]}), ("$", []),
    (f"{R}.when", config({**ARCHIVE, "when": {"old_item": {"a": [1]}}}, view_type="NEW_IMAGE")),
    (R, config({**ARCHIVE, "format": "item", "when": {"events": ["REMOVE"]}}, view_type="KEYS_ONLY")),
]

FIFO = {**NOTIFY, "to": "sqs://q.fifo", "group": "{a}", "dedupe": "{b}"}
# (code of the finding, path that its line begins with, configuration)
FOUND = [
    ("option-unused", f"{R}.subject", config({**NOTIFY, "subject": "{a}"})),
    ("option-unused", f"{R}.subject", config({**NOTIFY, "to": "https://h/", "subject": "{a}"})),
    ("option-unused", f"{R}.attributes", config({**NOTIFY, "to": "kinesis://s", "attributes": {"a": "{a}"}})),
    ("option-unused", f"{R}.group", config({**NOTIFY, "group": "{a}"})),
    ("option-unused", f"{R}.group", config({**NOTIFY, "to": "events://bus", "group": "{a}"})),
    ("option-unused", f"{R}.dedupe", config({**NOTIFY, "to": "firehose://s", "dedupe": "{a}"})),
    ("option-unused", f"{R}.escape", config({**NOTIFY, "escape": "json"})),
    ("option-unused", f"{R}.options.body", config({**NOTIFY, "message": "{a}", "options": {"body": "json"}})),
    ("option-unused", f"{R}.level", config({**ARCHIVE, "level": 3, "compression": "none"})),
    ("option-unused", f"{R}.guard_attribute", config({**REPLICATE, "guard": "none", "guard_attribute": "o"})),
    ("option-unused", f"{R}.write_attribute", config({**REPLICATE, "guard": {"table": "g"}, "write_attribute": "o"})),
    ("option-unused", f"{R}.deleted_attribute", config({**REPLICATE, "guard": "none", "deleted_attribute": "o"})),
    ("option-unused", f"{R}.expires_attribute", config({**REPLICATE, "guard": "none", "expires_attribute": "o"})),
    ("option-unused", f"{R}.tombstone_days", config({**REPLICATE, "guard": "none", "tombstone_days": 3})),
    ("option-unused", f"{R}.epoch", config({**REPLICATE, "guard": "none", "epoch": 3})),
    ("option-unused", f"{R}.ledger", config({**AGGREGATE, "mode": "at-least-once", "ledger": {"name": "x"}})),
    ("option-unused", f"{R}.forget_after_days", config({**AGGREGATE, "mode": "at-least-once", "forget_after_days": 20})),
    ("option-unused", f"{R}.expires_attribute", config({**AGGREGATE, "mode": "at-least-once", "expires_attribute": "e"})),
    ("table-shared", "$.routes[1].to", config(REPLICATE, REPLICATE)),
    ("table-shared", "$.routes[1].to", config(REPLICATE, {**REPLICATE, "to": "dynamodb://replica?region=us-east-1"})),
    ("table-shared", "$.routes[1].to", config({**REPLICATE, "key": {"a": "{a}"}}, {**REPLICATE, "key": {"a": "x{a}"}, "guard_attribute": "o"})),
    ("table-shared", "$.routes[1].to", config(REPLICATE, {**AGGREGATE, "to": "dynamodb://replica"})),
    ("table-shared", "$.routes[1].to", config({**REPLICATE, "guard": {"table": "totals"}}, AGGREGATE)),
    ("table-shared", "$.routes[1].ledger.table", config(REPLICATE, {**AGGREGATE, "ledger": {"table": "replica"}})),
    ("table-shared", "$.routes[1].tombstones.table", config(AGGREGATE, {**REPLICATE, "tombstones": {"table": "totals"}})),
    ("table-shared", "$.routes[1].guard.table", config({**REPLICATE, "guard": {"table": "g"}}, {**REPLICATE, "to": "dynamodb://other", "guard": {"table": "g", "key": "id"}})),
    ("table-shared", "$.routes[1].to", config(VIEW, {**VIEW, "list": {"name": "r0"}})),
    ("table-shared", "$.routes[1].to", config(VIEW, {**REPLICATE, "to": "dynamodb://view"})),
    ("table-shared", "$.routes[1].list.table", config(REPLICATE, {**VIEW, "list": {"table": "replica"}})),
    ("objects-shared", "$.routes[1].to", config(ARCHIVE, ARCHIVE)),
    ("failures-mixed", f"{R}.to", config({**NOTIFY, "to": "sqs://failures"})),
    ("failures-mixed", f"{R}.to", config({**ARCHIVE, "on_failure": ["sqs://q", "s3://bucket/x"]})),
    ("source-is-target", f"{R}.source", config({**REPLICATE, "source": "dynamodb://replica?region=us-east-1"})),
    ("source-is-target", f"{R}.source", config({**REPLICATE, "source": "dynamodb://arn:aws:dynamodb:us-east-1:123456789012:table/replica"})),
    ("ledger-shared", "$.routes[1].ledger", config({**AGGREGATE, "ledger": {"name": "l"}}, {**AGGREGATE, "ledger": {"name": "l"}})),
    ("counter-moves", f"{C}.key.PK", config(counter(key={"PK": "{yyyy}"}))),
    ("target-local", f"{R}.to", config({**ARCHIVE, "to": "file:x"})),
    ("target-local", "$.on_failure", config(ARCHIVE, on_failure="jsonl:x")),
    ("target-local", "$.trace_to", config(NOTIFY, trace_to="jsonl:x")),
    ("trace-unused", "$.trace", config(ARCHIVE, REPLICATE, trace="t")),
    ("view-lacks-image", f"{R}.when.pattern", config({**ARCHIVE, "when": {"pattern": [{"dynamodb": {"OldImage": {"a": {"S": ["x"]}}}}]}}, view_type="NEW_IMAGE")),
    ("batch-fails-whole", "report_batch_item_failures", config(ARCHIVE, report_batch_item_failures=False)),
]

RIGHT_ONES = [
    config(ARCHIVE, NOTIFY, trace="t"), config(ARCHIVE, trace="t", trace_to="xray:"), config(ARCHIVE, trace_to="https://collector.example/v1/traces"),
    config(VIEW, VIEW), config({**VIEW, "list": False}), config({**VIEW, "list": {"table": "lists"}}, {**VIEW, "list": {"table": "lists"}}),
    config(ARCHIVE), config(REPLICATE), config(AGGREGATE), config(NOTIFY), config(FIFO), config({**REPLICATE, "project": []}),
    config(AGGREGATE, AGGREGATE), config(REPLICATE, {**REPLICATE, "to": "dynamodb://replica?region=eu-west-1"}),
    config({**REPLICATE, "guard": {"table": "g"}}, {**REPLICATE, "to": "dynamodb://other", "guard": {"table": "g"}}),
    config({**REPLICATE, "key": {"a": "{a}", "b": "x"}}, {**REPLICATE, "key": {"a": "y{a}", "b": "x"}}),
    config({**REPLICATE, "source": "dynamodb://orders", "drop": ["a.b[*].c", "`a.b`"], "rename": {"x": "y"}, "set": {"d": "{c|date:yyyy}"},
            "where": {"s": ["OPEN"], "n": [{"numeric": [">", 1]}]}, "tombstones": {"table": "t"}, "project": ["a", "x"]}),
    config(sorted_counter(members={"by": "{total}"}, distinct={"d": "{c}"}, running_max={"m": "{total}"}, where={"a.b": [True]})),
    config(counter(add={"a": -1, "b": "1.50", "c": "{t}", "d": "-{t}", "e": "{cents}e-2", "f": "{a|default:`0}`}"})),
    config({**ARCHIVE, "on_failure": ["sqs://q", "s3://bucket/failed"], "when": {"expired": True}}, on_failure=...),
    config({"handler": "archive", "options": {"to": "s3://bucket/x", "format": "item"}}),
    config({"handler": "notify", "to": "sns:arn:aws:sns:us-east-1:123456789012:t", "subject": "{a}", "attributes": {"a": "{b}"}, "message": "{{{a}}}"}),
]
