#!/usr/bin/env python3
"""What was recorded on AWS, through `sluice replay` and a Python function: the same deliveries, the same
failure records."""
import json
from harness import Run, check, finish, record, work_folder

folder = work_folder()
BAD = ['{"batchItemFailures":[{"itemIdentifier":""}]}', '{"batchItemFailures":[{"itemIdentifier":null}]}',
       '{"batchItemFailures":[{"foo":123}]}', '{"batchItemFailures":[{"foo":null}]}',
       '{"batchItemFailures":[{"itemIdentifier":"999"}]}', '{"batchItemFailures":[{"itemIdentifier":123}]}']
GOOD = ["[]", "{}", "null", '{"batchItemFailures":[]}', '{"batchItemFailures":null}', '""']


def four_deliveries():
    run = Run(folder, "--max-retries", "3", "--report-failures", function="error", records=[record(1)])
    check("1: exits 1, since a record was given up", run.status == 1, run.err)
    check("1: four deliveries", run.sizes() == [1, 1, 1, 1] and [t["attempt"] for t in run.trace] == [1, 2, 3, 4])
    check("1: decisions", [t["decision"] for t in run.trace] == ["retry"] * 3 + ["discard"])
    failure, = run.failures
    check("1: count 4", failure["requestContext"]["approximateInvokeCount"] == 4, failure)
    check("1: Unhandled", failure["responseContext"]["functionError"] == "Unhandled")
    info = failure["DDBStreamBatchInfo"]
    check("1: one record", info["batchSize"] == 1 and info["startSequenceNumber"] == info["endSequenceNumber"] == "1")
    check("1: the fields are AWS's",
          list(failure) == ["requestContext", "responseContext", "version", "timestamp", "DDBStreamBatchInfo"] and
          list(info) == ["shardId", "startSequenceNumber", "endSequenceNumber", "approximateArrivalOfFirstRecord",
                         "approximateArrivalOfLastRecord", "batchSize", "streamArn"], failure)


def bad_answers():
    for answer in BAD:
        run = Run(folder, "--max-retries", "3", "--report-failures", function=f"answer '{answer}'", records=[record(1)])
        check(f"2: {answer}: four deliveries", run.sizes() == [1, 1, 1, 1], run.sizes())
        check(f"2: {answer}: functionError null", run.failures[0]["responseContext"]["functionError"] is None)
        check(f"2: {answer}: is in the trace", run.trace[0]["answer"] == json.loads(answer), run.trace[0])


def good_answers():
    for answer in GOOD:
        run = Run(folder, "--max-retries", "3", "--report-failures", function=f"answer '{answer}'", records=[record(1)])
        check(f"3: {answer}: one delivery", run.sizes() == [1] and run.status == 0, run.trace)


def fresh_budget():
    run = Run(folder, "--batch-size", "3", "--max-retries", "3", "--report-failures", function="name 6",
              records=[record(n) for n in range(1, 7)])
    check("4: #6 five times", run.deliveries(6) == 5 and run.deliveries(5) == 1, run.trace)
    failure, = run.failures
    check("4: count 4, batch of one", failure["requestContext"]["approximateInvokeCount"] == 4 and
          failure["DDBStreamBatchInfo"]["batchSize"] == 1, failure)
    check("4: functionError null", failure["responseContext"]["functionError"] is None)


def record_age():
    run = Run(folder, "--max-age", "60", function="error", records=[record(1)])
    failure, = run.failures
    check("5: RecordAgeExceeded after 8 calls", failure["requestContext"]["condition"] == "RecordAgeExceeded" and
          failure["requestContext"]["approximateInvokeCount"] == 8 and len(run.trace) == 8, failure)
    check("5: no responseContext", "responseContext" not in failure, failure)


def expired_when_read():
    records = [record(1, created=1573689000)] + [record(n) for n in range(2, 7)]
    run = Run(folder, "--batch-size", "10", "--max-age", "60", "--max-retries", "0", function="answer null", records=records)
    failure, = run.failures
    check("6: the expired one alone", failure["DDBStreamBatchInfo"]["batchSize"] == 1 and
          failure["requestContext"]["approximateInvokeCount"] == 1 and run.deliveries(1) == 0, failure)
    check("6: the others delivered", run.sizes() == [5], run.trace)


def filters():
    def seen(records, *patterns):
        flags = [f for p in patterns for f in ("--filter", p)]
        run = Run(folder, *flags, function="answer null", records=records)
        return [i for t in run.trace for i in t["ids"]]
    both = [record(1), record(2, name="MODIFY")]
    check("7: INSERT only", seen(both, '{"eventName":["INSERT"]}') == ["1"])
    check("7: both", seen(both, '{"eventName":["INSERT","MODIFY"]}') == ["1", "2"])
    check("7: patterns are ORed", seen(both, '{"eventName":["MODIFY"]}', '{"eventName":["INSERT"]}') == ["1", "2"])
    numbers = [record(42), record(101)]
    check("7: numeric never matches an N",
          seen(numbers, '{"dynamodb":{"NewImage":{"n":{"N":[{"numeric":[">",100]},{"anything-but":"101"}]}}}}') == ["42"])
    check("7: exists false on a typed attribute matches",
          seen(numbers, '{"dynamodb":{"NewImage":{"n":[{"exists":false}]}}}') == ["42", "101"])
    check("7: prefix", seen(numbers, '{"awsRegion":[{"prefix":"us-e"}]}') == ["42", "101"])
    check("7: creation time is a number",
          seen(numbers, '{"dynamodb":{"ApproximateCreationDateTime":[{"numeric":[">",0]}]}}') == ["42", "101"])
    run = Run(folder, "--filter", '{"eventName":"INSERT"}', function="answer null", records=both)
    check("7: a bad pattern is refused", run.status == 2 and "Invalid filter pattern definition" in run.err, run.err)


def bisect():
    run = Run(folder, "--bisect", "--max-retries", "0", function="error-on 2", records=[record(n) for n in range(1, 5)])
    check("8: sizes 4,2,1,1,2", run.sizes() == [4, 2, 1, 1, 2], run.sizes())
    check("8: one discard of one", [f["DDBStreamBatchInfo"]["startSequenceNumber"] for f in run.failures] == ["2"])
    check("8: decisions", [t["decision"] for t in run.trace] == ["bisect", "bisect", "advance", "discard", "advance"])


for vector in (four_deliveries, bad_answers, good_answers, fresh_budget, record_age, expired_when_read, filters, bisect):
    vector()
finish()
