"""Compares our endpoints with those of botocore's rules; see check_endpoints.sh."""
import itertools
import os
import subprocess
import sys

import botocore.session
from botocore.endpoint_provider import EndpointProvider
from botocore.exceptions import EndpointProviderError

SERVICES = {"DYNAMODB": "dynamodb", "DYNAMODB_STREAMS": "dynamodbstreams", "S3": "s3", "SQS": "sqs", "SNS": "sns", "EVENTBRIDGE": "events",
            "KINESIS": "kinesis", "FIREHOSE": "firehose", "STS": "sts", "LAMBDA": "lambda", "XRAY": "xray"}


def all_regions(loader):
    regions = set()
    for name in ("partitions", "endpoints"):
        for partition in loader.load_data(name)["partitions"]:
            regions.update(r for r in partition["regions"] if not r.endswith("-global"))
    return sorted(regions)


def theirs(provider, rules, region, fips, dual):
    given = {"Region": region, "UseFIPS": bool(fips), "UseDualStack": bool(dual)}
    for name, parameter in rules["parameters"].items():
        if name not in given and parameter.get("default") is not None:
            given[name] = parameter["default"]
    try:
        return provider.resolve_endpoint(**given).url
    except EndpointProviderError as error:
        return "NoEndpoint" if "does not support FIPS" in str(error) else str(error)


def main():
    loader = botocore.session.Session().get_component("data_loader")
    partitions, cases, wanted = loader.load_data("partitions"), [], []
    for ours, name in SERVICES.items():
        rules = loader.load_service_model(name, "endpoint-rule-set-1")
        provider = EndpointProvider(rules, partitions)
        for region, fips, dual in itertools.product(all_regions(loader), (0, 1), (0, 1)):
            cases.append(f"{ours} {region} {fips} {dual}")
            wanted.append(theirs(provider, rules, region, fips, dual))
    answers = subprocess.run([os.environ["BUILD"] + "/tests/aws/test_aws", "endpoints"], input="\n".join(cases) + "\n", capture_output=True,
                             text=True, timeout=600, check=True).stdout.split()
    bad = [f"{case}: {answer}, and botocore has {want}" for case, answer, want in zip(cases, answers, wanted) if answer != want]
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"{len(cases) - len(bad)} passed, {len(bad) + abs(len(cases) - len(answers))} failed")
    sys.exit(bool(bad) or len(answers) != len(cases) or len(cases) < 1000)


main()
