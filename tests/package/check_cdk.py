#!/usr/bin/env python3
"""deploy/cdk and deploy/cloudformation: the plain template is what template.yaml makes; the construct compiles by jsii, and what it
makes is what the template makes of the same parameters; moto makes a stack of it. Mistakes are said when the app is synthesized."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAM = pathlib.Path(subprocess.run([HERE / "install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
if not sys.prefix.startswith(str(SAM)):
    os.execv(SAM / "bin/python", [SAM / "bin/python", __file__])

import template  # noqa: E402  in SAM's environment

TOP = template.TOP
BUILD = TOP / os.environ.get("BUILD", "build")
CONFIG = {"report_batch_item_failures": True, "on_failure": "${FAILURE_QUEUE}", "ttl_attribute": "expires_at", "routes": [
    {"name": "expired", "handler": "archive", "when": {"expired": True}, "to": "s3://${ARCHIVE_BUCKET}/old/"},
    {"name": "paid", "handler": "replicate", "when": {"item": {"status": ["PAID"]}}, "to": "dynamodb://${REPLICA_TABLE}"}]}
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[-2500:]}")
    passed += 1


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=600, **more)


def plain_template():
    done = run(SAM / "bin/python", "scripts/release/cloudformation.py", cwd=TOP)
    check("the plain template is that of template.yaml: make bless", done.stdout == (TOP / "deploy/cloudformation/sluice.json").read_text(), done.stderr)
    document = json.loads(done.stdout)
    check("it needs no transform", "Transform" not in document and "AWS::Serverless" not in done.stdout)
    text = json.dumps(document["Resources"])
    check("its functions have the given zip", text.count('"S3Key": {"Ref": "CodeKey"}') == 3 and "stands-for" not in text)


def same_inputs():
    """The construct and the Terraform module take the same inputs, and the template has each of them."""
    parameters = set(json.loads((TOP / "deploy/cloudformation/sluice.json").read_text())["Parameters"])
    construct = set(re.findall(r"^ +(\w+): ", re.search(r"\.\.\.present\(\{(.*?)\}\)", (TOP / "deploy/cdk/lib/index.ts").read_text(), re.S)[1], re.M))
    module = set(re.findall(r"^ +(\w+) += ", re.search(r"given = \{(.*?)\n  \}", (TOP / "deploy/terraform/main.tf").read_text(), re.S)[1], re.M))
    check("both take the same", construct == module and len(module) > 14, construct ^ module)
    check("which the template has", module <= parameters, module - parameters)
    text = (TOP / "deploy/terraform/main.tf").read_text()
    variables = set(re.findall(r'^variable "(\w+)"', (TOP / "deploy/terraform/variables.tf").read_text(), re.M))
    check("every variable of the module is one, and is used", set(re.findall(r"var\.(\w+)", text)) == variables, variables)


class Synthesized:
    """The apps of all cases, by one process: what each said, and its stacks."""

    def __init__(self, work, **configs):
        self.work = work
        done = run("node", work / "app.js", work, BUILD / "sluice", work / "task", *[f"{name.replace('_', '-')}={config}" for name, config in configs.items()],
                   env={**os.environ, "NODE_PATH": str(work / "node_modules")})
        check("the apps run", done.returncode == 0, done.stdout + done.stderr)
        self.said = json.loads(done.stdout.splitlines()[-1])

    def out(self, name):
        check(f"{name}: it is synthesized", self.said[name] is None, self.said[name])
        return self.work / f"out-{name}"

    def parent(self, name):
        return json.loads((self.out(name) / "Shop.template.json").read_text())

    def nested(self, name):
        return [json.loads(path.read_text()) for path in sorted(self.out(name).glob("*.nested.template.json"))]


def compiled(work):
    """The package as npm installs it, where an app finds it."""
    done = run("scripts/release/cdk.sh", work, cwd=TOP)
    check("jsii compiles it, and npm packs it", done.returncode == 0, done.stdout + done.stderr)
    package = json.loads((work / "cdk/package.json").read_text())
    check("it has the version of all", package["version"] == (TOP / "VERSION").read_text().strip(), package["version"])
    with tarfile.open(work / f"sluice-cdk-{package['version']}.tgz") as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
        check("the package is whole", {".jsii", "sluice.json", "lib/index.js", "lib/index.d.ts", "README.md", "LICENSE", "node_modules/fflate/package.json"} <= names and
              not any(name.startswith("node_modules/aws") for name in names), sorted(names)[:40])
        packed.extractall(work)
    (work / "node_modules").mkdir()
    for name in ("aws-cdk-lib", "constructs"):
        (work / "node_modules" / name).symlink_to((work / "cdk/node_modules" / name).resolve())
    (work / "package").rename(work / "node_modules/sluice-cdk")
    shutil.copy(HERE / "cdk/app.js", work / "app.js")
    (work / "task/lib").mkdir(parents=True)
    (work / "task/bootstrap").write_bytes(b"\x7fELF")
    (work / "task/bootstrap").chmod(0o755)


def same_as_the_template(made, config):
    """The role, the mapping and the alarms of the nested stack are those that template.yaml makes of the same parameters."""
    nested, = made.nested("all")
    said = json.loads(run(BUILD / "sluice", "check", "--filters", "--set", "SHOP=here", config).stdout)["Filters"]
    check("the check says a filter for each route", len(said) == 2, said)
    arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/"
    given = {"SourceStreamArn": f"{arn}o/stream/2026-01-01T00:00:00.000", "ArchiveBucketName": "the-archive", "ArchivePrefix": "old/",
             "ReplicaTableArn": f"{arn}r", "TotalsTableArn": f"{arn}t", "SideTableArns": f"{arn}l,{arn}g", "Variables": '{"SHOP":"here"}',
             "SecretArns": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:hook", "AlarmTopicArn": "arn:aws:sns:eu-central-1:123456789012:on-call",
             "Architecture": "x86_64", "BatchSize": "777", **{f"Filter{n + 1}": row["Pattern"] for n, row in enumerate(said)}}
    # What the parent stack gives has names of its own: by the order of what is given there.
    outside = {"Orders": given["SourceStreamArn"], "Archive": "the-archive", "Replica": f"{arn}r", "Totals": f"{arn}t", "Ledger": f"{arn}l", "Guard": f"{arn}g",
               "Hook": given["SecretArns"], "OnCall": given["AlarmTopicArn"]}
    values = {}
    for name in (n for n, row in nested["Parameters"].items() if "Default" not in row):
        match = next((value for part, value in outside.items() if f"Shop{part}" in name), None)
        check(f"the nested stack asks for what is known: {name}", match is not None)
        values[name] = match
    plain = json.loads((TOP / "deploy/cloudformation/sluice.json").read_text())
    expected = template.Resolver({**given, "CodeBucket": "b", "CodeKey": "k"}, plain)
    got = template.Resolver(values, nested)
    names = [name for name in plain["Resources"] if expected.exists(name)]
    also = {name for name, row in nested["Resources"].items() if row["Type"] != "AWS::CDK::Metadata" and got.exists(name)}
    check("the same resources are made", set(names) == also, (set(names) ^ also))
    for name in names:
        one, other = expected.value(plain["Resources"][name]), got.value(nested["Resources"][name])
        for row in (one, other):
            row.get("Properties", {}).pop("Code", None)
            row.pop("Metadata", None)
        # Numbers are texts when a parameter gives them.
        check(f"{name} is the template's", json.loads(json.dumps(one), parse_int=str) == json.loads(json.dumps(other), parse_int=str) or
              strings(one) == strings(other), f"{json.dumps(one)}\n{json.dumps(other)}")
    outputs = made.parent("all")["Outputs"]
    check("the parent knows the function and the queue", all("Fn::GetAtt" in outputs[n]["Value"] for n in ("Function", "Failures")), outputs)
    asset = next(path for path in made.out("all").glob("asset.*") if path.is_dir())
    check("the function's folder has the configuration and a program", json.loads((asset / "sluice.json").read_text()) == CONFIG and os.access(asset / "bootstrap", os.X_OK))
    for path in made.out("all").glob("*.template.json"):
        done = run(SAM / "bin/cfn-lint", "--ignore-checks", "W", "--", path)
        check(f"cfn-lint finds no mistake in {path.name}", done.returncode == 0, done.stdout)


def strings(node):
    if isinstance(node, dict):
        return {key: strings(value) for key, value in node.items()}
    return [strings(value) for value in node] if isinstance(node, list) else str(node)


def others(made):
    check("two stand in one stack", len(made.nested("two")) == 2)
    ids = [key for key, row in made.parent("two")["Resources"].items() if row["Type"] == "AWS::CloudFormation::Stack"]
    check("their stacks' names are short", len(ids) == 2 and all(len(key) <= 32 for key in ids), ids)
    plain, = made.nested("no-filters")
    mapping = next(row for row in plain["Resources"].values() if row["Type"] == "AWS::Lambda::EventSourceMapping")
    stream = "arn:aws:dynamodb:eu-central-1:123456789012:table/o/stream/2026-01-01T00:00:00.000"
    given = {name: stream for name, row in plain["Parameters"].items() if "Default" not in row}
    check("filters can be left out", not template.Resolver(given, plain).value(mapping)["Properties"].get("FilterCriteria"))
    for name, words in (("no-stream", "has no stream"), ("six-filters", "takes five filters"), ("subnets", "belong together"), ("bad", "did you mean"),
                        ("none", "none.json")):
        check(f"{words}: said when the app is synthesized", words in (made.said[name] or ""), made.said[name])


def by_moto(work, made):
    """The construct's stack, made in moto: all but what moto makes by other calls alone."""
    nested, = made.nested("plain")
    nested["Resources"] = {name: row for name, row in nested["Resources"].items() if not row["Type"].startswith("AWS::CloudWatch::")}
    nested.pop("Outputs")
    subprocess.run([TOP / "tests/services/start.sh", "--owner", str(os.getpid()), str(work / "services"), "moto"], check=True, capture_output=True, cwd=TOP)
    endpoint = dict(line.split("=", 1) for line in (work / "services/env").read_text().splitlines() if "=" in line)["MOTO_ENDPOINT"]
    import boto3
    keys = {"endpoint_url": endpoint, "region_name": "eu-west-1", "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret"}
    s3, dynamodb, formation, functions = (boto3.client(name, **keys) for name in ("s3", "dynamodb", "cloudformation", "lambda"))
    # As `cdk deploy` does it: the asset's bucket and key are those that the app names.
    asset = next(path for path in made.out("plain").glob("asset.*") if path.is_dir())
    s3.create_bucket(Bucket="cdk-hnb659fds-assets-123456789012-eu-west-1", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    shutil.make_archive(str(work / "code"), "zip", asset)
    s3.put_object(Bucket="cdk-hnb659fds-assets-123456789012-eu-west-1", Key=f"{asset.name[6:]}.zip", Body=(work / "code.zip").read_bytes())
    table = dynamodb.create_table(TableName="orders", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
                                  AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
                                  StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})["TableDescription"]
    given = [{"ParameterKey": name, "ParameterValue": table["LatestStreamArn"]} for name, row in nested["Parameters"].items() if "Default" not in row]
    formation.create_stack(StackName="consumer", TemplateBody=json.dumps(nested), Parameters=given, Capabilities=["CAPABILITY_IAM"])
    stack, = formation.describe_stacks(StackName="consumer")["Stacks"]
    check("moto makes a stack of it", stack["StackStatus"] == "CREATE_COMPLETE", stack)
    function, = functions.list_functions()["Functions"]
    mapping, = functions.list_event_source_mappings()["EventSourceMappings"]
    check("with the function", function["Runtime"] == "provided.al2023", function)
    check("and its mapping", mapping["EventSourceArn"] == table["LatestStreamArn"] and mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], mapping)


def main():
    plain_template()
    same_inputs()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        compiled(work)
        config, bad = work / "sluice.json", work / "bad.json"
        config.write_text(json.dumps(CONFIG))
        bad.write_text(json.dumps({**CONFIG, "routes": [{"name": "x", "handler": "archiv", "to": "s3://b/"}]}))
        made = Synthesized(work, all=config, two=config, no_filters=config, plain=config, no_stream=config, six_filters=config, subnets=config, bad=bad,
                           none=work / "none.json")
        same_as_the_template(made, config)
        others(made)
        by_moto(work, made)
    print(f"{passed} passed, 0 failed")


main()
