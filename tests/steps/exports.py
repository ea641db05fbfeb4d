"""A full export of a table in S3, in the layout that DynamoDB writes: summary, list of files, their checksums, gzipped data."""
import base64
import gzip
import hashlib
import json
import time as clock

ID = "01700000000000-0a1b2c3d"


def md5(body):
    return base64.b64encode(hashlib.md5(body).digest()).decode()


def ago(seconds):
    return clock.strftime("%Y-%m-%dT%H:%M:%SZ", clock.gmtime(clock.time() - seconds))


def put_export(s3, bucket, prefix, items, files, table="arn:aws:dynamodb:us-east-1:123456789012:table/orders"):
    """An export of an hour ago. Spreads the items over so many files, and leaves one more empty, as real exports have them. Returns
    the place and the files' keys."""
    time = ago(3600).replace("Z", ".000Z")
    root = f"AWSDynamoDB/{ID}"
    rows, keys = [], []
    parts = [items[i::files] for i in range(files)] + [[]]
    for i, part in enumerate(parts):
        lines = "".join(json.dumps({"Item": item}, separators=(",", ":")) + "\n" for item in part)
        body = gzip.compress(lines.encode(), mtime=0)
        key = f"{root}/data/file{i:05d}.json.gz"
        s3.put_object(Bucket=bucket, Key=prefix + key, Body=body)
        keys.append(prefix + key)
        rows.append({"itemCount": len(part), "md5Checksum": md5(body), "etag": hashlib.md5(body).hexdigest(), "dataFileS3Key": prefix + key})
    listing = "".join(json.dumps(row) + "\n" for row in rows).encode()
    summary = json.dumps({
        "version": "2020-06-30", "exportArn": f"{table}/export/{ID}", "startTime": time, "endTime": time, "tableArn": table,
        "tableId": "00000000-0000-4000-8000-000000000000", "exportTime": time, "s3Bucket": bucket, "s3Prefix": prefix.rstrip("/") or None,
        "s3SseAlgorithm": "AES256", "s3SseKmsKeyId": None, "manifestFilesS3Key": f"{prefix}{root}/manifest-files.json",
        "billedSizeBytes": 1000, "itemCount": len(items), "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}).encode()
    for name, body in (("manifest-files.json", listing), ("manifest-summary.json", summary)):
        s3.put_object(Bucket=bucket, Key=f"{prefix}{root}/{name}", Body=body)
        s3.put_object(Bucket=bucket, Key=f"{prefix}{root}/{name.replace('.json', '.md5')}", Body=md5(body).encode())
    s3.put_object(Bucket=bucket, Key=f"{prefix}{root}/_started", Body=b"")
    return f"s3://{bucket}/{prefix}{root}", keys
