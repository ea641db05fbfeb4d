#!/usr/bin/env python3
"""template.yaml as plain CloudFormation, for the CDK construct, the Terraform module and whoever has no SAM: the same resources,
with the functions' zip at CodeBucket and CodeKey: scripts/release/cloudformation.py >deploy/cloudformation/sluice.json. By
SAM's own translator, from where tests/package/install.sh puts it; `make bless` runs it."""
import json
import os
import pathlib
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
from samtranslator.parser.parser import Parser  # noqa: E402
from samtranslator.translator.translator import Translator  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402

CODE = {"CodeBucket": "The bucket of this Region that has the zip of a release, with your configuration in it",
        "CodeKey": "The zip's key there. Another key for each version: CloudFormation does not see that an object has changed"}
BUCKET, KEY = "a-bucket-that-stands-for-codebucket", "a-key-that-stands-for-codekey"


def plain(document):
    del document["Metadata"]  # (names of the groups of a form)
    for resource in document["Resources"].values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::Serverless::Function":
            properties["CodeUri"] = {"Bucket": BUCKET, "Key": KEY}
            # It names folders of this tree.
            resource.pop("Metadata", None)
        if "DefinitionUri" in properties:
            properties["Definition"] = json.loads(pathlib.Path(properties.pop("DefinitionUri")).read_text())
    made = Translator({}, Parser()).translate(document, {})
    made["Parameters"] = {**{name: {"Type": "String", "MinLength": 1, "Description": text} for name, text in CODE.items()}, **made["Parameters"]}
    text = json.dumps(made, indent=1)
    for stands, parameter in ((BUCKET, "CodeBucket"), (KEY, "CodeKey")):
        text = text.replace(json.dumps(stands), json.dumps({"Ref": parameter}))
    return text + "\n"


sys.stdout.write(plain(yaml_parse(pathlib.Path("template.yaml").read_text())))
