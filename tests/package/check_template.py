#!/usr/bin/env python3
"""template.yaml: SAM and cfn-lint find nothing, and with either way of coming (a demonstration, an existing table) it makes what
it says and no more."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAM = pathlib.Path(subprocess.run([HERE / "install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
if not sys.prefix.startswith(str(SAM)):
    os.execv(SAM / "bin/python", [SAM / "bin/python", __file__])

import reviewed  # noqa: E402  in SAM's environment
import template  # noqa: E402
from samcli.cli.types import CfnParameterOverridesType  # noqa: E402

STREAM = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users/stream/2026-01-01T00:00:00.000"
REPLICA = f"arn:aws:dynamodb:us-west-2:{template.ACCOUNT}:table/users_replica"
ROLE = "arn:aws:iam::210987654321:role/replica-writer"
TOPIC = f"arn:aws:sns:{template.REGION}:{template.ACCOUNT}:on-call"
ALARMS = {"IteratorAgeAlarm", "RecordAgeAlarm", "ErrorsAlarm", "ThrottlesAlarm", "FailureQueueAlarm", "FailureAgeAlarm", "FailureBucketAlarm", "DroppedAlarm"}
ALWAYS = {"SluiceFunction", "SluiceRole", "SluiceLogs", "FailureQueue", "FailureQueuePolicy", "FailureBucket", "FailureBucketPolicy",
          "Dashboard", *ALARMS}
DEMONSTRATION = {"OrdersTable", "ReplicaTable", "TotalsTable", "ArchiveBucket", "ArchiveBucketPolicy"}
DAY_S = 24 * 3600


def lint(program, *flags):
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": template.REGION}
    done = subprocess.run([SAM / "bin" / program, *flags], cwd=template.TOP, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"{program}:\n{done.stdout}"
    return done.stdout


def cfn_lint():
    said = lint("cfn-lint", "--include-checks", "I", "--", "template.yaml")
    assert not said.strip(), said


def sam_validate():
    assert "is a valid SAM Template" in lint("sam", "validate", "--lint")


def lint_is_awake():
    """A template that is wrong in one place is found out, so that silence means something."""
    text = (template.TOP / "template.yaml").read_text().replace("Runtime: !Ref Runtime", "Runtime: provided.al2")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([SAM / "bin/cfn-lint", file.name], text=True, stdout=subprocess.PIPE, check=False)
    assert "2531" in done.stdout or "2533" in done.stdout, done.stdout


def demonstration():
    resources, outputs = template.resolve({})
    assert set(resources) == ALWAYS | DEMONSTRATION, set(resources)
    variables = resources["SluiceFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["ARCHIVE_BUCKET"] == "<ArchiveBucket>" and variables["TOTALS_TABLE"] == "<TotalsTable>"
    assert variables["REPLICA_TABLE"] == "<ReplicaTable>" and variables["REPLICA_REGION"] == template.REGION
    assert resources["SluiceFunction"]["Properties"]["Architectures"] == ["arm64"]
    assert {"OrdersTableName", "FailureQueueUrl", "DashboardUrl"} <= set(outputs)


def existing_table_alone():
    resources, outputs = template.resolve({"SourceStreamArn": STREAM, "ConfigFile": "archive.json"})
    assert set(resources) == ALWAYS, set(resources) ^ ALWAYS
    variables = resources["SluiceFunction"]["Properties"]["Environment"]["Variables"]
    assert not {"ARCHIVE_BUCKET", "REPLICA_TABLE", "REPLICA_ROLE", "TOTALS_TABLE"} & set(variables), variables
    given = {resource for _, resource in template.allowed(resources, "routes")}
    assert given == {"<FailureQueue.Arn>", "<FailureBucket.Arn>/*"}, given
    assert "OrdersTableName" not in outputs


def existing_table_with_targets():
    resources, _ = template.resolve({"SourceStreamArn": STREAM, "ArchiveBucketName": "cold", "ReplicaTableArn": REPLICA,
                                     "ReplicaRoleArn": ROLE, "AlarmTopicArn": TOPIC})
    assert set(resources) == ALWAYS
    variables = resources["SluiceFunction"]["Properties"]["Environment"]["Variables"]
    assert (variables["REPLICA_TABLE"], variables["REPLICA_REGION"]) == ("users_replica", "us-west-2"), variables
    assert variables["REPLICA_ROLE"] == ROLE and variables["ARCHIVE_BUCKET"] == "cold"
    given = template.allowed(resources, "routes")
    assert ("s3:PutObject", "arn:aws:s3:::cold/expired/*") in given and ("sts:AssumeRole", ROLE) in given, given
    for name in ALARMS:
        assert resources[name]["Properties"]["AlarmActions"] == [TOPIC], name


def what_the_configuration_names():
    table, secret, parameter = (f"arn:aws:{rest}" for rest in (f"dynamodb:{template.REGION}:{template.ACCOUNT}:table/ledger",
                                f"secretsmanager:{template.REGION}:{template.ACCOUNT}:secret:orders/hook-??????", f"ssm:{template.REGION}:{template.ACCOUNT}:parameter/orders/url"))
    everything = {"SideTableArns": f"{table},{table}2", "SecretArns": secret, "ParameterArns": parameter}
    actions = {"SideTableArns": {(f"dynamodb:{a}", t) for t in (table, table + "2") for a in
                                 ("DescribeTable", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")},
               "SecretArns": {("secretsmanager:GetSecretValue", secret)}, "ParameterArns": {("ssm:GetParameter", parameter)}}
    for names in [[name] for name in everything] + [list(everything)]:
        resources, _ = template.resolve({name: everything[name] for name in names})
        policy = resources["NamedPolicy"]["Properties"]
        assert policy["Roles"] == ["<SluiceRole>"], policy
        assert template.pairs(policy["PolicyDocument"]["Statement"]) == set().union(*(actions[name] for name in names)), policy
    resources, _ = template.resolve({**everything, "SetAside": "on", "SeedFrom": "scan"})
    assert resources["NamedPolicy"]["Properties"]["Roles"] == ["<SluiceRole>", "<DrainRole>", "<SeedRole>"]
    variables = json.dumps({"HOOK_URL": "${ssm:/orders/url}"})
    resources, _ = template.resolve({"Variables": variables, "SetAside": "on", "SeedFrom": "scan"})
    assert "NamedPolicy" not in resources
    for name in ("SluiceFunction", "DrainFunction", "SeedFunction"):
        assert resources[name]["Properties"]["Environment"]["Variables"]["SLUICE_VARIABLES"] == variables, name
    resources, _ = template.resolve({"ArchivePrefix": "a/b/"})
    assert ("s3:PutObject", "arn:aws:s3:::<ArchiveBucket>/a/b/*") in template.allowed(resources, "routes")


def mapping_loses_nothing():
    for overrides in ({}, {"SourceStreamArn": STREAM}, {"Timeout": 10}):
        function = template.resolve(overrides)[0]["SluiceFunction"]["Properties"]
        mapping = function["Events"]["Stream"]["Properties"]
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert function["Environment"]["Variables"]["SLUICE_REPORT_BATCH_ITEM_FAILURES"] == "true"
        assert mapping["BisectBatchOnFunctionError"] is True and mapping["MaximumRecordAgeInSeconds"] == -1
        assert mapping["MaximumRetryAttempts"] * int(function["Timeout"]) > DAY_S, "retries end before the stream forgets"
        assert mapping["DestinationConfig"]["OnFailure"]["Destination"]


def mapping_failures_to_bucket():
    resources, _ = template.resolve({"MappingFailuresTo": "bucket"})
    mapping = resources["SluiceFunction"]["Properties"]["Events"]["Stream"]["Properties"]
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"] == "<FailureBucket.Arn>"
    assert ("s3:ListBucket", "<FailureBucket.Arn>") in template.allowed(resources, "platform")
    assert ("s3:PutObject", "<FailureBucket.Arn>/*") in template.allowed(resources, "routes")


def sluice_check(overrides, config, change=None):
    """The shipped configuration with the function's variables and the mapping's properties: what `sluice check` says."""
    resources, _ = template.resolve(overrides)
    function = resources["SluiceFunction"]["Properties"]
    mapping = {**function["Events"]["Stream"]["Properties"], **(change or {})}
    variables = {name: re.sub(r"<([A-Za-z]+).*>", lambda m: m.group(1).lower(), value)
                 for name, value in function["Environment"]["Variables"].items()}
    assert variables.pop("SLUICE_CONFIG") == f"/var/task/{config}"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(mapping, file)
        file.flush()
        return subprocess.run([template.TOP / os.environ.get("BUILD", "build") / "sluice", "check", "--mapping", file.name, f"deploy/{config}"],
                              cwd=template.TOP, env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)


def configurations_pass_sluice_check():
    existing = {"SourceStreamArn": STREAM, "ConfigFile": "archive.json", "ArchiveBucketName": "cold"}
    for overrides, config in (({}, "sluice.json"), (existing, "archive.json"), ({"MappingFailuresTo": "bucket"}, "sluice.json")):
        done = sluice_check(overrides, config)
        assert done.returncode == 0 and "0 warnings, 0 notes" in done.stdout, done.stdout
    for change in ({"FunctionResponseTypes": []}, {"MaximumRetryAttempts": 3}):
        done = sluice_check({}, "sluice.json", change)
        assert done.returncode == 1, done.stdout


def filters_are_copied():
    """What `sluice check` prints goes, as docs/DEPLOY.md says, into a file of parameters, through SAM's own reader and the template
    into the mapping, which `sluice check` then finds right."""
    base = {"SourceStreamArn": STREAM, "ConfigFile": "archive.json", "ArchiveBucketName": "cold"}
    printed = re.search(r"^ *filter .*?: (\{.*\})$", sluice_check(base, "archive.json").stdout, re.M).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(f"Filter1: >-\n  {printed}\n")
        file.flush()
        read = CfnParameterOverridesType().convert(f"file://{file.name}", None, None)
    assert read == {"Filter1": printed}, read
    criteria = template.resolve({**base, **read})[0]["SluiceFunction"]["Properties"]["Events"]["Stream"]["Properties"]["FilterCriteria"]
    assert criteria == {"Filters": [{"Pattern": printed}]}, criteria
    done = sluice_check({**base, **read}, "archive.json")
    assert done.returncode == 0 and "0 warnings, 0 notes" in done.stdout, done.stdout


def wrong_parameters_are_refused():
    for overrides in ({"SourceStreamArn": "users"}, {"Runtime": "provided"}, {"ConfigFile": "../secret.json"},
                      {"ReplicaTableArn": STREAM}, {"Architecture": "i386"}, {"Filter1": '[{"eventName":["REMOVE"]}]'},
                      {"TumblingWindowSeconds": 60, "ParallelizationFactor": 2}, {"VpcSubnetIds": "subnet-0a1b2c3d"}, {"Metrics": "0"},
                      {"VpcSecurityGroupIds": "sg-0a1b2c3d"}, {"SourceStreamArn": STREAM, "AthenaDatabase": "orders"},
                      {"AthenaDatabase": "my-orders"}, {"AthenaSince": "yesterday"}, {"MaximumRetryAttempts": 10001}, {"LayerArns": "arn:aws:x"},
                      {"Variables": "A=b"}, {"SecretArns": "orders/hook"}, {"ParameterArns": "*"}, {"SideTableArns": "ledger"}, {"ArchivePrefix": "expired"}, {"ArchivePrefix": "*/"}):
        try:
            template.resolve(overrides)
        except AssertionError:
            continue
        raise AssertionError(f"{overrides} passed")


# These wait for programs, so they run beside the others.
LINTS = [cfn_lint, sam_validate, lint_is_awake]
CASES = [demonstration, existing_table_alone, existing_table_with_targets, what_the_configuration_names,
         mapping_loses_nothing, mapping_failures_to_bucket, configurations_pass_sluice_check, filters_are_copied, wrong_parameters_are_refused,
         *reviewed.CASES]
subprocess.run(["make", "-s", "all"], cwd=template.TOP, check=True, stdout=subprocess.DEVNULL)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    lints = [(case, pool.submit(case).result) for case in LINTS]
    for case, run in [*((case, case) for case in CASES), *lints]:
        try:
            run()
        except AssertionError as wrong:
            sys.exit(f"{case.__name__}: {wrong}")
print(f"{len(LINTS) + len(CASES)} passed, 0 failed")
