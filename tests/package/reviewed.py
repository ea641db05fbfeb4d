"""What a reviewer asks of a template, of every set of parameters: each optional one alone and all together, with either way of
coming, and a few hundred sets by chance. check_template.py runs CASES."""
import functools
import itertools
import json
import logging
import os
import random
import re

import botocore.session
import botocore.validate
import template
from samtranslator.public.translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform

STREAM = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users/stream/2026-01-01T00:00:00.000"
KEY = f"arn:aws:kms:{template.REGION}:{template.ACCOUNT}:key/0a1b2c3d"
REMOVALS, INSERTS = '{"eventName":["REMOVE"]}', '{"eventName":["INSERT"]}'
BASES = [{}, {"SourceStreamArn": STREAM, "ConfigFile": "archive.json", "ArchiveBucketName": "cold"}, {"SourceStreamArn": STREAM}]
# Each is one wish of a user; together they set every parameter to something else than its default.
WISHES = [
    {"StartingPosition": "LATEST"}, {"ArchiveBucketName": "colder"}, {"ReplicaGuard": "none"},
    {"ReplicaTableArn": f"arn:aws:dynamodb:us-west-2:{template.ACCOUNT}:table/copy"},
    {"ReplicaRoleArn": "arn:aws:iam::210987654321:role/replica-writer"},
    {"TotalsTableArn": f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/totals"},
    {"ExtraPolicyArn": f"arn:aws:iam::{template.ACCOUNT}:policy/more"}, {"ConfigFile": "mine.json"},
    {"Filter1": REMOVALS}, {"Filter2": INSERTS, "Filter3": REMOVALS, "Filter4": INSERTS, "Filter5": REMOVALS},
    {"Architecture": "x86_64"}, {"Runtime": "provided.al2"}, {"MemorySize": 1024}, {"Timeout": 900}, {"ReservedConcurrency": "10"},
    {"LayerArns": "arn:aws:lambda:eu-central-1:123456789012:layer:monitor:3,arn:aws:lambda:eu-central-1:123456789012:layer:more:1"},
    {"LogLevel": "WARN"}, {"LogRetentionDays": 365}, {"Metrics": "60"}, {"Summary": "off"}, {"Shutdown": "on"}, {"KmsKeyArn": KEY},
    {"VpcSubnetIds": "subnet-0a1b2c3d,subnet-4a1b2c3d", "VpcSecurityGroupIds": "sg-0a1b2c3d"},
    {"BatchSize": 100}, {"BatchingWindowSeconds": 10}, {"ParallelizationFactor": 10}, {"TumblingWindowSeconds": 60, "ParallelizationFactor": 1},
    {"MaximumRetryAttempts": 3}, {"MaximumRecordAgeSeconds": 3600}, {"MappingFailuresTo": "bucket"},
    {"AlarmTopicArn": f"arn:aws:sns:{template.REGION}:{template.ACCOUNT}:on-call"}, {"IteratorAgeAlarmMinutes": 5}, {"FailureAgeAlarmDays": 3},
    {"AthenaDatabase": "orders", "ArchiveBucketName": "cold"}, {"AthenaSince": "NOW-2YEARS"}, {"SeedFrom": "scan", "SeedSegments": 8, "SeedReadUnits": 100},
    {"SeedFrom": "s3://exports/of/AWSDynamoDB/01700000000000-0a1b2c3d", "SeedKeys": "PK,SK", "SeedConcurrency": 9, "SeedWriteUnits": 9},
    {"SideTableArns": f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/ledger"}, {"Variables": '{"OWNER": "orders"}'}, {"ArchivePrefix": "records/"},
    {"SecretArns": f"arn:aws:secretsmanager:{template.REGION}:{template.ACCOUNT}:secret:hook-??????"},
    {"ParameterArns": f"arn:aws:ssm:{template.REGION}:{template.ACCOUNT}:parameter/hook"},
    {"SetAside": "on", "DrainConcurrency": 5, "LetterAgeAlarmHours": 12},
]
# What AWS grants on "*" alone, or (the last six) not wholly on less.
STARS = {"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:PutSpans", "xray:PutSpansForIndexing", "dynamodb:ListStreams", "lambda:ListEventSourceMappings", "ec2:CreateNetworkInterface",
         "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses",
         "ec2:UnassignPrivateIpAddresses"}


def merged(parts):
    return dict(itertools.chain.from_iterable(part.items() for part in parts))


def some(dice):
    """A few wishes in their order: the window's comes after the factor that it rules out."""
    return [WISHES[i] for i in sorted(dice.sample(range(len(WISHES)), dice.randint(2, 12)))]


@functools.cache
def worlds():
    """[(parameters, resources, outputs)]"""
    dice = random.Random(21)
    chosen = [merged([base, *wishes]) for base in BASES
              for wishes in ([], WISHES, *([wish] for wish in WISHES), *(some(dice) for _ in range(100)))]
    return [(parameters, *template.resolve(parameters)) for parameters in chosen]


def of_type(resources, kind):
    return [(name, body) for name, body in resources.items() if body["Type"] == kind]


def every_wish_is_covered():
    asked = set(merged(WISHES)) | set(merged(BASES))
    assert asked == set(template.document()["Parameters"]), asked ^ set(template.document()["Parameters"])
    defaults = {name: row.get("Default") for name, row in template.document()["Parameters"].items()}
    assert not [wish for wish in WISHES if all(defaults[name] == value for name, value in wish.items())]


def values(node, path=""):
    if isinstance(node, dict):
        for name, value in node.items():
            yield from values(value, f"{path}.{name}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from values(value, f"{path}[{i}]")
    else:
        yield path, node


def what_is_unset_is_left_out():
    """No resource refers to one that is not made (the resolver refuses that), and nothing is set to nothing."""
    for parameters, resources, _ in worlds():
        empty = [path for path, value in values(resources) if value in ("", None)]
        assert not empty, f"{empty} with {parameters}"


def statements(resources):
    for name, holder in (*of_type(resources, "AWS::IAM::Role"), *of_type(resources, "AWS::IAM::Policy")):
        for policy in holder["Properties"].get("Policies", [holder["Properties"]]):
            for statement in policy["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Allow", f"{name}: {statement}"
                listed = (statement[part] if isinstance(statement[part], list) else [statement[part]] for part in ("Action", "Resource"))
                for action, place in itertools.product(*listed):
                    yield f"{name}.{statement['Sid']}", action, place


def rights_name_their_resources():
    for parameters, resources, _ in worlds():
        for where, action, place in statements(resources):
            assert "*" not in action, f"{where}: {action}"
            assert place != "*" or action in STARS, f"{where}: {action} on everything"
            assert place == "*" or re.fullmatch(r"(arn:aws:|<\w+\.\w+>)[^*]*(?:[/:]\*)?", place), f"{where}: {place}"
            assert not action.startswith("kms:") or place == parameters["KmsKeyArn"], where
            assert not action.startswith("ec2:") or "VpcSubnetIds" in parameters, where
        networked = {where.partition(".")[0] for where, action, _ in statements(resources) if action == "ec2:CreateNetworkInterface"}
        assert networked == {body["Properties"]["Role"][1:].partition(".")[0] for _, body in of_type(resources, "AWS::Serverless::Function")
                             if "VpcConfig" in body["Properties"]}, networked
        keyed = {where.partition(".")[0] for where, action, _ in statements(resources) if action == "kms:GenerateDataKey"}
        roles = {name for name, _ in of_type(resources, "AWS::IAM::Role")}
        assert keyed == (roles if "KmsKeyArn" in parameters else set()), f"{keyed} with {parameters}"


def tls_only(resources, kind, target):
    """The policies that refuse what is not encrypted on its way, for one bucket or queue."""
    found = []
    for name, policy in of_type(resources, kind):
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            where = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            if (statement["Effect"], statement["Principal"], statement["Condition"]) == ("Deny", "*", {"Bool": {"aws:SecureTransport": "false"}}) \
                    and where[0] == f"<{target}.Arn>":
                found.append((name, statement["Action"], where))
    return found


def buckets_are_kept_well():
    for parameters, resources, _ in worlds():
        for name, body in of_type(resources, "AWS::S3::Bucket"):
            settings = body["Properties"]
            assert settings["VersioningConfiguration"] == {"Status": "Enabled"}, name
            rules = merged(settings["LifecycleConfiguration"]["Rules"])
            assert rules["NoncurrentVersionExpiration"] and rules["AbortIncompleteMultipartUpload"], name
            assert set(settings["PublicAccessBlockConfiguration"].values()) == {True} and len(settings["PublicAccessBlockConfiguration"]) == 4
            assert settings["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
            encryption, = settings["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            with_key = {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}}
            assert encryption == (with_key if "KmsKeyArn" in parameters else {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}), name
            (policy, action, where), = tls_only(resources, "AWS::S3::BucketPolicy", name)
            assert action == "s3:*" and where == [f"<{name}.Arn>", f"<{name}.Arn>/*"], name
            # (A bucket that holds something cannot be deleted with its stack.)
            for kept in (body, resources[policy]):
                assert (kept["DeletionPolicy"], kept["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), name


DAY = 24 * 3600
# {queue: (settings beside the encryption, those that its policy names)}. A letter is hidden for 900 s at a time, ten days long.
QUEUES = {"FailureQueue": ({"MessageRetentionPeriod": 14 * DAY}, ["FailureQueue"])}
LETTERS = {"AsideQueue": ({"MessageRetentionPeriod": 10 * DAY, "VisibilityTimeout": 900,
                           "RedrivePolicy": {"deadLetterTargetArn": "<AsideDeadLetters.Arn>", "maxReceiveCount": 1000}}, ["AsideQueue", "AsideDeadLetters"]),
           "AsideDeadLetters": ({"MessageRetentionPeriod": 14 * DAY}, ["AsideQueue", "AsideDeadLetters"])}


def queues_are_kept_well():
    for parameters, resources, _ in worlds():
        queues = dict(of_type(resources, "AWS::SQS::Queue"))
        wanted = {**QUEUES, **(LETTERS if "SetAside" in parameters else {})}
        assert set(queues) == set(wanted), set(queues) ^ set(wanted)
        refused = {arn: (policy, action) for name in queues for policy, action, where in tls_only(resources, "AWS::SQS::QueuePolicy", name) for arn in where}
        for name, (settings, _) in wanted.items():
            sealed = {"KmsMasterKeyId": KEY, "SqsManagedSseEnabled": False} if "KmsKeyArn" in parameters else {"SqsManagedSseEnabled": True}
            assert queues[name]["Properties"] == {**settings, **sealed}, queues[name]["Properties"]
            policy, action = refused[f"<{name}.Arn>"]
            assert action == "sqs:*"
            for kept in (queues[name], resources[policy]):
                production = "SourceStreamArn" in parameters
                assert kept["DeletionPolicy"] == ("RetainExceptOnCreate" if production else "Delete") and kept["UpdateReplacePolicy"] == "Retain"


def letters_are_drained_well():
    """The queue's timeout is six times the drain's, each letter is answered for by itself, and nothing is there without the parameter."""
    for parameters, resources, outputs in worlds():
        is_on = parameters.get("SetAside") == "on"
        assert ("DrainFunction" in resources) == ("DrainRole" in resources) == ("DrainFunctionName" in outputs) == is_on
        assert ("ASIDE_QUEUE" in resources["SluiceFunction"]["Properties"]["Environment"]["Variables"]) == is_on
        if not is_on:
            continue
        drain, function = (resources[name]["Properties"] for name in ("DrainFunction", "SluiceFunction"))
        event = drain["Events"]["Letters"]
        assert event["Type"] == "SQS" and event["Properties"] == {
            "Queue": "<AsideQueue.Arn>", "BatchSize": 10, "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": parameters["DrainConcurrency"]}}, event
        assert 6 * drain["Timeout"] == resources["AsideQueue"]["Properties"]["VisibilityTimeout"]
        given, wanted = (body["Environment"]["Variables"] for body in (drain, function))
        assert {**wanted, "SLUICE_REPORT_BATCH_ITEM_FAILURES": "true"} == {**given, "SLUICE_REPORT_BATCH_ITEM_FAILURES": "true"}, set(given) ^ set(wanted)
        same = ("CodeUri", "Handler", "Runtime", "Architectures", "MemorySize", "Layers", "KmsKeyArn", "VpcConfig", "Tracing", "LoggingConfig")
        assert {name: drain.get(name) for name in same} == {name: function.get(name) for name in same}


def a_demonstration_goes_whole():
    """`sam delete` leaves nothing of it but the buckets that hold objects, and their policies."""
    kept = {name for name, body in template.resolve({})[0].items() if body.get("DeletionPolicy", "Delete") != "Delete"}
    assert kept == {"ArchiveBucket", "ArchiveBucketPolicy", "FailureBucket", "FailureBucketPolicy"}, kept


def alarms_are_explained():
    """Each has an action in docs/OPERATE.md, a row of its table, a place on the dashboard, and the topic."""
    manual = (template.TOP / "docs/OPERATE.md").read_text()
    headings = {heading.lower(): re.sub(r"[^a-z-]", "", heading.lower().replace(" ", "-")) for heading in re.findall(r"^#+ (.*)$", manual, re.M)}
    rows = dict(re.findall(r"^\| `(\w+Alarm)` \|.*\]\(#([a-z-]+)\) \|$", manual, re.M))
    for parameters, resources, _ in worlds():
        alarms = dict(of_type(resources, "AWS::CloudWatch::Alarm"))
        there = set(rows) if "SetAside" in parameters else set(rows) - OF_LETTERS
        assert there == set(alarms), there ^ set(alarms)
        for name, alarm in alarms.items():
            section = alarm["Properties"]["AlarmDescription"].rpartition(": docs/OPERATE.md, ")[2]
            assert headings.get(section) == rows[name], f"{name}: {section}"
            told = [parameters["AlarmTopicArn"]] if "AlarmTopicArn" in parameters else None
            assert alarm["Properties"].get("AlarmActions") == told, name
        body = json.loads(resources["Dashboard"]["Properties"]["DashboardBody"])
        shown = body["widgets"][0]["properties"]["alarms"]
        assert set(shown) == {f"<{name}.Arn>" for name in alarms}, shown


OF_LETTERS = {"AsideAlarm", "LetterAgeAlarm", "DeadLettersAlarm"}
# {alarm: (namespace, metric, statistic, dimensions)}
WATCHED = {
    "IteratorAgeAlarm": ("AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": "<SluiceFunction>"}),
    "RecordAgeAlarm": ("Sluice", "IteratorAgeMs", "Maximum", {"Function": "<SluiceFunction>"}),
    "ErrorsAlarm": ("AWS/Lambda", "Errors", "Sum", {"FunctionName": "<SluiceFunction>"}),
    "ThrottlesAlarm": ("AWS/Lambda", "Throttles", "Sum", {"FunctionName": "<SluiceFunction>"}),
    "FailureQueueAlarm": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"QueueName": "<FailureQueue>"}),
    "FailureAgeAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", {"QueueName": "<FailureQueue>"}),
    "FailureBucketAlarm": ("AWS/S3", "PutRequests", "Sum", {"BucketName": "<FailureBucket>", "FilterId": "all"}),
    "DroppedAlarm": ("AWS/Lambda", "DroppedEventCount", "Sum", {"EventSourceMappingUUID": "<SluiceFunctionStream>"}),
    "AsideAlarm": ("AWS/SQS", "ApproximateNumberOfMessagesVisible+ApproximateNumberOfMessagesNotVisible", "Maximum", {"QueueName": "<AsideQueue>"}),
    "LetterAgeAlarm": ("Sluice", "LetterAgeMs", "Maximum", {"Function": "<DrainFunction>"}),
    "DeadLettersAlarm": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"QueueName": "<AsideDeadLetters>"}),
}


def watched(alarm):
    """(namespace, metric, statistic, dimensions) of an alarm on one metric, or on a calculation with one."""
    if "Metrics" not in alarm:
        metric, statistic = alarm, alarm["Statistic"]
    else:
        inner = [row["MetricStat"] for row in alarm["Metrics"] if not row.get("ReturnData", True)]
        places = {(row["Metric"]["Namespace"], str(row["Metric"]["Dimensions"]), row["Stat"]) for row in inner}
        assert len(places) == 1, places
        metric, statistic = {**inner[0]["Metric"], "MetricName": "+".join(row["Metric"]["MetricName"] for row in inner)}, inner[0]["Stat"]
    return metric["Namespace"], metric["MetricName"], statistic, {row["Name"]: row["Value"] for row in metric["Dimensions"]}


def alarms_watch_what_they_say():
    resources, _ = template.resolve({"IteratorAgeAlarmMinutes": 5, "FailureAgeAlarmDays": 3, "SetAside": "on", "LetterAgeAlarmHours": 12})
    alarms = {name: body["Properties"] for name, body in of_type(resources, "AWS::CloudWatch::Alarm")}
    assert {name: watched(alarm) for name, alarm in alarms.items()} == WATCHED
    thresholds = {name: alarm["Threshold"] for name, alarm in alarms.items() if alarm["Threshold"]}
    assert thresholds == {"IteratorAgeAlarm": 5, "RecordAgeAlarm": 5, "FailureAgeAlarm": 3, "LetterAgeAlarm": 12}, thresholds
    units = {name: row["Expression"] for name, alarm in alarms.items() for row in alarm.get("Metrics", []) if "Expression" in row}
    assert units == {"IteratorAgeAlarm": "age / 60000", "RecordAgeAlarm": "age / 60000", "FailureAgeAlarm": "age / 86400", "AsideAlarm": "visible + flight",
                     "LetterAgeAlarm": "age / 3600000"}, units
    assert {alarm["ComparisonOperator"] for alarm in alarms.values()} == {"GreaterThanThreshold"}
    # S3 has the alarm's metric only if it is asked for, and the mapping has its counts.
    assert resources["FailureBucket"]["Properties"]["MetricsConfigurations"] == [{"Id": WATCHED["FailureBucketAlarm"][3]["FilterId"]}]
    assert resources["SluiceFunction"]["Properties"]["Events"]["Stream"]["Properties"]["MetricsConfig"] == {"Metrics": ["EventCount"]}


def alarms_look_back_a_day_at_most():
    """CloudWatch refuses an alarm over more, unless its periods are of an hour."""
    for name, alarm in of_type(template.resolve({"SetAside": "on"})[0], "AWS::CloudWatch::Alarm"):
        settings = alarm["Properties"]
        period = settings.get("Period") or next(row["MetricStat"]["Period"] for row in settings["Metrics"] if "MetricStat" in row)
        assert period * settings["EvaluationPeriods"] <= 24 * 3600, name
        assert settings.get("DatapointsToAlarm", 1) <= settings["EvaluationPeriods"], name
        assert settings["TreatMissingData"] == "notBreaching", f"{name}: silence is what most of these metrics do when all is well"


def glue_takes_the_table():
    """cfn-lint lets anything pass as a table's parameters; Glue's own model does not."""
    model = botocore.session.get_session().get_service_model("glue")
    for parameters, resources, _ in worlds():
        made = {body["Type"]: body["Properties"] for body in resources.values() if body["Type"].startswith("AWS::Glue::")}
        assert bool(made) == ("AthenaDatabase" in parameters)
        for kind, part in (("Database", "DatabaseInput"), ("Table", "TableInput")) if made else ():
            report = botocore.validate.ParamValidator().validate(made[f"AWS::Glue::{kind}"][part], model.shape_for(part))
            assert not report.has_errors(), report.generate_report()


def charts(resources):
    for widget in json.loads(resources["Dashboard"]["Properties"]["DashboardBody"])["widgets"]:
        if widget["type"] == "metric":
            yield widget["properties"]


def shorthand(rows):
    """CloudWatch's rows of metrics with "." and "..." written out: [(namespace, metric, names of its dimensions)]."""
    before = []
    for row in rows:
        texts = [part for part in row if isinstance(part, str)]
        if not texts:
            continue
        if texts[0] == "...":
            texts = before[:len(before) - len(texts) + 1] + texts[1:]
        before = [old if part == "." else part for part, old in itertools.zip_longest(texts, before[:len(texts)])]
        yield before[0], before[1], tuple(before[2::2])


def ours():
    """{names of dimensions: metrics} that docs/METRICS.md has."""
    manual = (template.TOP / "docs/METRICS.md").read_text()
    tables = (re.search(rf"^\| of {owner} \|.*\n(?:\|.*\n)+", manual, re.M).group() for owner in ("the function", "a route"))
    function, route = ({name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"\w+", row)} for table in tables)
    return {("Function",): function, ("Function", "Route"): route}


def metrics_are_those_that_are_written():
    resources = template.resolve({"SetAside": "on"})[0]
    seen, written = set(), ours()
    for chart in charts(resources):
        for namespace, metric, dimensions in shorthand(chart["metrics"]):
            if namespace == "Sluice":
                assert metric in written[dimensions], f"{chart['title']}: {metric} of {dimensions}"
                seen.add((dimensions, metric))
        for row in chart["metrics"]:
            found = re.fullmatch(r"SEARCH\('\{Sluice,(\w+),(\w+)\} Function=\"<SluiceFunction>\" MetricName=\"(\w+)\"', '\w+', \d+\)",
                                 row[0].get("expression", "") if isinstance(row[0], dict) else "")
            if found:
                assert found.group(3) in written[found.group(1), found.group(2)]
                assert row[0]["label"].endswith("${PROP('Dim.Route')}"), row
                seen.add(((found.group(1), found.group(2)), found.group(3)))
    assert seen >= {(("Function",), metric) for metric in written["Function",] - {"ColdStart"}}, seen
    assert {metric for dimensions, metric in seen if len(dimensions) == 2} == {"Applied", "Parked", "Failed", "SetAside", "SinkMs"}, seen
    assert all(metric in written[tuple(dimensions)] for namespace, metric, _, dimensions in WATCHED.values() if namespace == "Sluice")


class NoPolicies(ManagedPolicyLoader):
    def __init__(self):
        super().__init__(None)

    def load(self):
        return {}


def sam_makes_the_mapping():
    """SAM's own transform of the resolved template: what the parameters set arrives in the mapping and in the function."""
    os.environ.setdefault("AWS_DEFAULT_REGION", template.REGION)
    logging.getLogger("samtranslator").setLevel(logging.ERROR)  # (it wants metrics of itself to be sent)
    parameters = {**BASES[1], "Filter1": REMOVALS, "Filter3": INSERTS, "KmsKeyArn": KEY, "TumblingWindowSeconds": 60, "MaximumRetryAttempts": 7,
                  "MaximumRecordAgeSeconds": 600, "ReservedConcurrency": "10", "VpcSubnetIds": "subnet-0a1b2c3d", "VpcSecurityGroupIds": "sg-0a1b2c3d"}
    for given in (parameters, BASES[1]):
        resources, _ = template.resolve(given)
        made = transform({"Resources": json.loads(json.dumps({"SluiceFunction": {**resources["SluiceFunction"], "Metadata": {}}}).replace(
            '"CodeUri": "deploy/"', '"CodeUri": "s3://code/zip"'))}, {}, NoPolicies())["Resources"]
        mapping, function = (made[name]["Properties"] for name in ("SluiceFunctionStream", "SluiceFunction"))
        want = {"FilterCriteria": {"Filters": [{"Pattern": REMOVALS}, {"Pattern": INSERTS}]}, "KmsKeyArn": KEY, "TumblingWindowInSeconds": 60,
                "MaximumRetryAttempts": 7, "MaximumRecordAgeInSeconds": 600} if given is parameters else {
                    "MaximumRetryAttempts": 10000, "MaximumRecordAgeInSeconds": -1}
        names = ("FilterCriteria", "KmsKeyArn", "TumblingWindowInSeconds", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds")
        assert {name: mapping[name] for name in names if name in mapping} == want, mapping
        want = {"KmsKeyArn": KEY, "ReservedConcurrentExecutions": "10",
                "VpcConfig": {"SubnetIds": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}} if given is parameters else {}
        assert {name: function[name] for name in ("KmsKeyArn", "ReservedConcurrentExecutions", "VpcConfig", "Layers") if name in function} == want


def parameters_are_documented():
    """docs/DEPLOY.md, or SEEDING.md, has a row for each, and none that is not there; the console's form has each in one group."""
    manual = "".join((template.TOP / f"docs/{page}.md").read_text() for page in ("DEPLOY", "SEEDING"))
    known = template.document()["Parameters"]
    rows = [name for row in re.findall(r"^\| (`[A-Z][a-z]\w+`(?:, `[A-Z][a-z]\w+`)*) \|", manual, re.M) for name in re.findall(r"\w+", row)]
    assert set(rows) == set(known), set(rows) ^ set(known)
    # (What stands after --parameter-overrides is checked by tests/docs.)
    named = set(re.findall(r"`([A-Z][A-Za-z]+[a-z][A-Za-z0-9]*)=[^`]*`", manual))
    assert named and named <= set(known), named - set(known)
    grouped = [name for group in template.document()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"] for name in group["Parameters"]]
    assert sorted(grouped) == sorted(known), set(grouped) ^ set(known)
    for name, row in known.items():
        assert row["Type"] == "Number" or "AllowedPattern" in row or "AllowedValues" in row, f"{name} takes anything"


CASES = [every_wish_is_covered, what_is_unset_is_left_out, rights_name_their_resources, buckets_are_kept_well, queues_are_kept_well, letters_are_drained_well,
         a_demonstration_goes_whole, alarms_are_explained, alarms_watch_what_they_say, alarms_look_back_a_day_at_most,
         glue_takes_the_table, metrics_are_those_that_are_written, sam_makes_the_mapping, parameters_are_documented]
