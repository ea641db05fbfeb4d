"""The tables of world.sh: make; break (a row of the replica); places LEASES. (Without an SDK: it starts in a tenth of the time.)"""
import json
import os
import sys
import urllib.error
import urllib.request

ITEMS = 200


def dynamodb(operation, **body):
    """DynamoDB Local looks at the key's id alone: it has one database for each."""
    scope = f'{os.environ["AWS_ACCESS_KEY_ID"]}/20260101/{os.environ["AWS_REGION"]}/dynamodb/aws4_request'
    request = urllib.request.Request(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], json.dumps(body).encode(), {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def create(name, **more):
    dynamodb("CreateTable", TableName=name, BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
             AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}], **more)


def make():
    create("orders", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    create("replica")
    for first in range(0, ITEMS, 25):
        items = [{"PutRequest": {"Item": {"PK": {"S": f"ORDER#{n:04}"}, "total": {"N": str(n)}}}} for n in range(first, first + 25)]
        dynamodb("BatchWriteItem", RequestItems={"orders": items})


def damage():
    dynamodb("UpdateItem", TableName="replica", Key={"PK": {"S": "ORDER#0042"}}, UpdateExpression="SET #t = :t",
             ExpressionAttributeNames={"#t": "total"}, ExpressionAttributeValues={":t": {"N": "1"}})


def places(leases):
    """How many shards have a place behind a record: TRIM_HORIZON and LATEST sort behind all numbers."""
    try:
        print(dynamodb("Scan", TableName=leases, ConsistentRead=True, Select="COUNT", FilterExpression="checkpoint < :words",
                       ExpressionAttributeValues={":words": {"S": "A"}})["Count"])
    except urllib.error.HTTPError:  # not yet a table
        print(0)


{"make": make, "break": damage, "places": places}[sys.argv[1]](*sys.argv[2:])
