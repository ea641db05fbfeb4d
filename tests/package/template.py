"""The template as CloudFormation would see it with given parameters: `resolve(overrides)`. Only what template.yaml uses."""
import functools
import pathlib
import re

from samtranslator.yaml_helper import yaml_parse

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
ACCOUNT, REGION, STACK = "123456789012", "eu-central-1", "stack"
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::StackName": STACK}
NOTHING = object()  # AWS::NoValue


@functools.cache
def document():
    return yaml_parse((TOP / "template.yaml").read_text())


def refuse(name, row, value):
    """What CloudFormation refuses in a parameter's value."""
    assert re.fullmatch(row.get("AllowedPattern", "(?s).*"), value), f"{name}: {value} does not match"
    assert value in [str(v) for v in row.get("AllowedValues", [value])], f"{name}: {value} is not allowed"
    assert len(value) <= row.get("MaxLength", 4096), f"{name}: {len(value)} characters"
    if row["Type"] == "Number":
        assert row.get("MinValue", 0) <= int(value) <= row.get("MaxValue", 10000), f"{name}: {value} is out of bounds"


class Resolver:
    def __init__(self, overrides, of=None):
        self.document = of or document()
        parameters = self.document["Parameters"]
        unknown = set(overrides) - set(parameters)
        assert not unknown, f"no such parameters: {unknown}"
        self.values = {**{name: row.get("Default") for name, row in parameters.items()}, **overrides, **PSEUDO}
        for name, row in parameters.items():
            refuse(name, row, str(self.values[name]))
        for name, rule in self.document.get("Rules", {}).items():
            for row in rule["Assertions"] if self.value(rule["RuleCondition"]) else []:
                assert self.value(row["Assert"]), f"rule {name}: {row['AssertDescription']}"

    def condition(self, name):
        return self.value(self.document["Conditions"][name])

    def exists(self, resource):
        condition = self.document["Resources"][resource].get("Condition")
        return condition is None or self.condition(condition)

    def ref(self, name):
        if name == "AWS::NoValue":
            return NOTHING
        if name in self.values:
            return self.values[name]
        if name in self.document["Resources"]:
            assert self.exists(name), f"a reference to {name}, which is not made"
        return f"<{name}>"

    def attribute(self, name):
        resource, _, attribute = name.partition(".")
        self.ref(resource)
        return f"<{resource}>" if attribute.endswith("Name") else f"<{resource}.{attribute}>"

    def substitute(self, argument):
        text, extra = argument if isinstance(argument, list) else (argument, {})

        def one(match):
            name = match.group(1)
            if name in extra:
                return self.value(extra[name])
            return self.attribute(name) if "." in name else str(self.ref(name))
        return re.sub(r"\$\{([^}!]+)\}", one, text).replace("${!", "${")

    def value(self, node):
        if isinstance(node, list):
            return [v for v in map(self.value, node) if v is not NOTHING]
        if not isinstance(node, dict):
            return node
        if len(node) != 1 or not (next(iter(node)).startswith("Fn::") or next(iter(node)) in ("Ref", "Condition")):
            return {k: v for k, v in ((k, self.value(v)) for k, v in node.items()) if v is not NOTHING}
        (function, argument), = node.items()
        match function:
            case "Ref":
                return self.ref(argument)
            case "Condition":
                return self.condition(argument)
            case "Fn::If":
                return self.value(argument[1] if self.condition(argument[0]) else argument[2])
            case "Fn::Equals":
                return str(self.value(argument[0])) == str(self.value(argument[1]))
            case "Fn::Not":
                return not self.value(argument[0])
            case "Fn::Or":
                return any(map(self.value, argument))
            case "Fn::And":
                return all(map(self.value, argument))
            case "Fn::GetAtt":
                return self.attribute(argument if isinstance(argument, str) else ".".join(argument))
            case "Fn::Sub":
                return self.substitute(argument)
            case "Fn::Join":
                return argument[0].join(map(str, self.value(argument[1])))
            case "Fn::Split":
                return self.value(argument[1]).split(argument[0])
            case "Fn::Select":
                return self.value(argument[1])[int(argument[0])]
        raise ValueError(f"the test does not know {function}")


def resolve(overrides):
    """{name: resource} with everything resolved, and {name: output}."""
    resolver = Resolver(overrides)
    resources = {name: {**resolver.value(body), "Type": body["Type"]}
                 for name, body in resolver.document["Resources"].items() if resolver.exists(name)}
    outputs = {name: resolver.value(body["Value"]) for name, body in resolver.document["Outputs"].items()
               if resolver.value({"Fn::If": [body["Condition"], True, False]} if "Condition" in body else True)}
    return resources, outputs


def allowed(resources, policy, role="SluiceRole"):
    """{(action, resource)} of one policy of a role; the function's, if not said."""
    role = resources[role]["Properties"]
    return pairs(next(p for p in role["Policies"] if p["PolicyName"] == policy)["PolicyDocument"]["Statement"])


def pairs(statements):
    found = set()
    for statement in statements:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        places = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        found |= {(action, place) for action in actions for place in places}
    return found
