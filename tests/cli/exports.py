"""Full exports of a table, as DynamoDB writes them to S3, in a folder."""
import base64
import gzip
import hashlib
import json
import pathlib

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def write_export(folder, files, time="2026-11-22T06:00:00.000Z", arn=ARN, level=6):
    """`files`: lists of items. Returns the folder that holds manifest-summary.json."""
    ident = "01693685827463-2d8752fd"
    root = pathlib.Path(folder) / "AWSDynamoDB" / ident
    (root / "data").mkdir(parents=True)
    lines = []
    for i, items in enumerate(files):
        data = gzip.compress("".join(json.dumps({"Item": item}) + "\n" for item in items).encode("utf-8", "surrogatepass"), level)
        name = f"{i:013d}.json.gz"
        (root / "data" / name).write_bytes(data)
        lines.append(json.dumps({"itemCount": len(items), "md5Checksum": md5(data), "etag": hashlib.md5(data).hexdigest() + "-1",
                                 "dataFileS3Key": f"AWSDynamoDB/{ident}/data/{name}"}))
    return finish_export(root, ident, lines, sum(map(len, files)), time, arn)


def finish_export(root, ident, lines, n, time, arn):
    summary = {"version": "2020-06-30", "exportArn": f"{arn}/export/{ident}", "startTime": time, "endTime": time, "tableArn": arn,
               "tableId": "12345a12-abcd-123a-ab12-1234abc12345", "exportTime": time, "s3Bucket": "b", "s3Prefix": None,
               "s3SseAlgorithm": "AES256", "s3SseKmsKeyId": None, "manifestFilesS3Key": f"AWSDynamoDB/{ident}/manifest-files.json",
               "billedSizeBytes": 0, "itemCount": n, "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}
    for name, text in (("manifest-files", "".join(line + "\n" for line in lines)), ("manifest-summary", json.dumps(summary))):
        (root / f"{name}.json").write_text(text)
        (root / f"{name}.md5").write_text(md5(text.encode()))
    (root / "_started").write_text("")
    return root
