/* What AWS's error codes mean: the table. */
#include "aws/codes.h"

#include "base/array.h"

struct row {
    const char *service; /* NULL: any */
    const char *says;    /* the message must hold this; NULL: any */
    struct sl_code is;
};

#define KEYS_HINT   "check the credentials of this process"
#define POLICY_HINT "the role's policy must allow it; a policy change takes some seconds"
#define SCHEMA_HINT "compare the table's key schema with the one in the configuration"
#define NAME_HINT   "check the name, the region and the account"
#define KMS_HINT    "check the KMS key, its state and its policy"
#define CLOCK_HINT  "set this machine's clock"
#define BUG_HINT    "this is a mistake of Sluice: please report it"

/* The rows' columns: what the service's name and message have to be, the code, and what to do. */
#define ROW(service, says, code, kind, status, secret, hint)                                                 \
    {                                                                                                        \
        service, says,                                                                                       \
        {                                                                                                    \
            code, kind, status, secret, hint                                                                 \
        }                                                                                                    \
    }
#define PASSES(service, code)    ROW(service, NULL, code, SL_CODE_TRANSIENT, SL_RETRY, false, NULL)
#define THROTTLES(service, code) ROW(service, NULL, code, SL_CODE_THROTTLE, SL_RETRY, false, NULL)
#define SKEWED(code, hint)       ROW(NULL, NULL, code, SL_CODE_SKEW, SL_FATAL, true, hint)
#define EXPIRED(code)            ROW(NULL, NULL, code, SL_CODE_EXPIRED, SL_FATAL, true, "the credentials have expired")
#define KEYS(code)               ROW(NULL, NULL, code, SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT)
/* The environment's, and a record's. */
#define OURS(service, code, hint) ROW(service, NULL, code, SL_CODE_FINAL, SL_FATAL, false, hint)
#define RECORDS(service, code)    ROW(service, NULL, code, SL_CODE_FINAL, SL_REJECT, false, NULL)

/* The first row that fits counts: rows with a message come before those without. */
static const struct row rows[] = {
    /* Retryable in the SDKs' standard mode (botocore retries/standard.py, data/_retry.json). */
    THROTTLES(NULL, "Throttling"),
    THROTTLES(NULL, "ThrottlingException"),
    THROTTLES(NULL, "ThrottlingError"), /* a reason of TransactWriteItems */
    THROTTLES(NULL, "ThrottledException"),
    THROTTLES(NULL, "Throttled"), /* SNS API pages */
    THROTTLES(NULL, "RequestThrottled"),
    THROTTLES(NULL, "RequestThrottledException"),
    THROTTLES(NULL, "TooManyRequestsException"),
    THROTTLES(NULL, "ProvisionedThroughputExceededException"),
    THROTTLES(NULL, "ProvisionedThroughputExceeded"), /* a reason of TransactWriteItems */
    THROTTLES(NULL, "TransactionInProgressException"),
    THROTTLES(NULL, "RequestLimitExceeded"),
    THROTTLES(NULL, "BandwidthLimitExceeded"),
    THROTTLES(NULL, "LimitExceededException"),
    THROTTLES(NULL, "SlowDown"),
    THROTTLES(NULL, "PriorRequestNotComplete"),
    THROTTLES(NULL, "EC2ThrottledException"),
    THROTTLES(NULL, "ServiceUnavailableException"), /* Firehose API page */
    PASSES(NULL, "RequestTimeout"),
    PASSES(NULL, "RequestTimeoutException"),
    PASSES(NULL, "RequestAbortedException"),
    PASSES(NULL, "ReplicatedWriteConflictException"),
    PASSES(NULL, "TransactionConflictException"),
    PASSES(NULL, "TransactionConflict"), /* a reason of TransactWriteItems */
    PASSES(NULL, "ConcurrentModificationException"),
    PASSES(NULL, "InternalServerError"),
    PASSES(NULL, "InternalFailure"),
    PASSES(NULL, "InternalFailureException"),
    PASSES(NULL, "InternalException"),
    PASSES(NULL, "InternalError"),
    PASSES(NULL, "InternalErrorException"),
    PASSES(NULL, "ServiceUnavailable"),
    PASSES("STS", "IDPCommunicationError"),
    PASSES("STS", "IDPCommunicationErrorException"),
    /* What is being created or changed. */
    ROW(NULL, NULL, "ResourceInUseException", SL_CODE_TRANSIENT, SL_RETRY, false,
        "it is being created or changed"),
    /* Conditional writes (S3 user guide, "conditional-writes"): a race; the next attempt decides it. */
    PASSES("S3", "ConditionalRequestConflict"),
    PASSES("S3", "OperationAborted"),
    /* It did not arrive as it was sent. */
    PASSES("S3", "BadDigest"),
    PASSES("S3", "IncompleteBody"),
    PASSES("S3", "XAmzContentSHA256Mismatch"),
    /* Clock skew (the SDKs' lists, reference of Java v2 and JS v3). */
    ROW(NULL, NULL, "RequestTimeTooSkewed", SL_CODE_SKEW, SL_FATAL, false, CLOCK_HINT),
    ROW(NULL, NULL, "RequestExpired", SL_CODE_SKEW, SL_FATAL, false, CLOCK_HINT),
    ROW(NULL, NULL, "RequestInTheFuture", SL_CODE_SKEW, SL_FATAL, false, CLOCK_HINT),
    SKEWED("InvalidSignatureException", KEYS_HINT),
    SKEWED("SignatureDoesNotMatch", KEYS_HINT),
    SKEWED("AuthFailure", KEYS_HINT),
    /* Credentials (common errors of the API references). */
    EXPIRED("ExpiredToken"),
    EXPIRED("ExpiredTokenException"),
    EXPIRED("TokenRefreshRequired"),
    KEYS("UnrecognizedClientException"),
    KEYS("InvalidClientTokenId"),
    KEYS("InvalidAccessKeyId"),
    KEYS("InvalidToken"),
    KEYS("MissingAuthenticationToken"),
    KEYS("MissingAuthenticationTokenException"),
    KEYS("IncompleteSignature"),
    KEYS("IncompleteSignatureException"),
    KEYS("CredentialsNotSupported"),
    ROW(NULL, NULL, "AuthorizationHeaderMalformed", SL_CODE_FINAL, SL_FATAL, true,
        "set the target's region="),
    /* Permissions and accounts. */
    OURS(NULL, "AccessDenied", POLICY_HINT),
    OURS(NULL, "AccessDeniedException", POLICY_HINT),
    OURS(NULL, "NotAuthorized", POLICY_HINT),
    OURS(NULL, "NotAuthorizedException", POLICY_HINT),
    OURS(NULL, "AuthorizationError", POLICY_HINT),
    OURS(NULL, "AuthorizationErrorException", POLICY_HINT),
    OURS(NULL, "UnauthorizedAccess", POLICY_HINT),
    OURS(NULL, "OptInRequired", NULL),
    OURS(NULL, "InvalidSecurity", NULL), /* SQS, SNS: not over TLS, not signed; S3: the account */
    OURS(NULL, "InvalidSecurityException", NULL),
    OURS("EVENTBRIDGE", "NotAuthorizedForSourceException", POLICY_HINT),
    OURS("EVENTBRIDGE", "NotAuthorizedForDetailTypeException", POLICY_HINT),
    OURS("EVENTBRIDGE", "InvalidAccountIdException", NAME_HINT),
    OURS("S3", "AccountProblem", NULL),
    OURS("S3", "AllAccessDisabled", NULL),
    OURS("S3", "NotSignedUp", NULL),
    OURS("S3", "InvalidPayer", NULL),
    /* What does not exist, or is switched off (each service's API reference). */
    OURS(NULL, "ResourceNotFoundException", NAME_HINT),
    OURS(NULL, "TableNotFoundException", NAME_HINT),
    OURS(NULL, "QueueDoesNotExist", NAME_HINT),
    OURS(NULL, "NonExistentQueue", NAME_HINT),
    OURS("SQS", "QueueDeletedRecently", "a queue can be created again 60 seconds after it was deleted"),
    OURS(NULL, "InvalidAddress", NAME_HINT),
    OURS("SNS", "NotFound", NAME_HINT),
    OURS("SNS", "NotFoundException", NAME_HINT),
    ROW("SNS", "TopicArn", "InvalidParameter", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT),
    OURS("SNS", "EndpointDisabled", NULL),
    OURS("SNS", "PlatformApplicationDisabled", NULL),
    OURS("EVENTBRIDGE", "OperationDisabledException", "the operation is switched off in this region"),
    OURS("EVENTBRIDGE", "RedactionFailure", NULL),
    OURS("FIREHOSE", "InvalidKMSResourceException", KMS_HINT),
    OURS("FIREHOSE", "InvalidSourceException", "the stream takes records of another source only"),
    OURS("S3", "NoSuchBucket", NAME_HINT),
    OURS("S3", "NoSuchAccessPoint", NAME_HINT),
    OURS("S3", "InvalidBucketName", NAME_HINT),
    OURS("S3", "InvalidBucketState", NULL),
    OURS("S3", "InvalidAccessPoint", NAME_HINT),
    OURS("S3", "InvalidAccessPointAliasError", NAME_HINT),
    OURS("S3", "InvalidAddressingHeader", NULL),
    OURS("S3", "PermanentRedirect", "set the target's region="),
    OURS("S3", "IllegalLocationConstraintException", "set the target's region="),
    OURS("S3", "InvalidLocationConstraint", "set the target's region="),
    OURS("S3", "InvalidStorageClass", "check the target's storage_class="),
    OURS("S3", "InvalidTag", "check the target's tags="),
    OURS("S3", "InvalidEncryptionAlgorithmError", "check the target's sse="),
    OURS("S3", "EncryptionTypeMismatch", "check the target's sse="),
    OURS("S3", "ServerSideEncryptionConfigurationNotFoundError", "check the target's sse="),
    OURS(NULL, "NotImplemented", "this server does not support an option of the target"),
    OURS(NULL, "MethodNotAllowed", NAME_HINT),
    OURS(NULL, "UnsupportedOperation", NULL),
    OURS(NULL, "UnknownOperationException", "this endpoint belongs to another service"),
    OURS(NULL, "InvalidAction", "this endpoint belongs to another service"),
    OURS(NULL, "InvalidEndpointException", "check the target's endpoint="),
    /* Requests that only a mistake of ours makes: no record is parked for it. */
    OURS("DYNAMODB", "IdempotentParameterMismatchException", BUG_HINT),
    OURS(NULL, "EmptyBatchRequest", BUG_HINT),
    OURS(NULL, "InvalidBatchEntryId", BUG_HINT),
    OURS(NULL, "BatchEntryIdsNotDistinct", BUG_HINT),
    OURS(NULL, "TooManyEntriesInBatchRequest", BUG_HINT),
    /* Records' codes. A batch that is too long is sent again entry by entry; then the one entry is. */
    ROW("S3", NULL, "PreconditionFailed", SL_CODE_FINAL, SL_REJECT, false, "an object with this name exists"),
    RECORDS("S3", "KeyTooLongError"),
    RECORDS("S3", "EntityTooLarge"),
    RECORDS(NULL, "InvalidMessageContents"),
    ROW("SNS", "Message too long", "InvalidParameter", SL_CODE_FINAL, SL_REJECT, false, NULL),
    RECORDS(NULL, "BatchRequestTooLong"),
    RECORDS("EVENTBRIDGE", "MalformedDetail"),
    RECORDS("EVENTBRIDGE", "InvalidArgument"),
    ROW("EVENTBRIDGE", "Total size of the entries", "ValidationException", SL_CODE_FINAL, SL_REJECT, false,
        NULL),
    RECORDS("DYNAMODB", "ConditionalCheckFailedException"),
    RECORDS("DYNAMODB", "ConditionalCheckFailed"),
    RECORDS("DYNAMODB", "ItemCollectionSizeLimitExceededException"),
    RECORDS("DYNAMODB", "ItemCollectionSizeLimitExceeded"),
/* A key that does not fit the table: the configuration's fault, or the item's, whose type it may be. */
#define SCHEMA(says)                                                                                         \
    ROW("DYNAMODB", says, "ValidationException", SL_CODE_UNKNOWN, SL_FATAL, false, SCHEMA_HINT)
    SCHEMA("does not match the schema"),
    SCHEMA("Missing the key"),
    SCHEMA("required keys was not given"),
    SCHEMA("number of conditions on the keys"),
    SCHEMA("Type mismatch for"),
};

/* What DynamoDB says of an item that it can never store, in a ValidationException or in a transaction's
 * reason: sizes, numbers, empty keys, nesting, duplicates in a set (API reference, TransactWriteItems; the
 * texts as the service and DynamoDB Local have them). */
static const char *const item_texts[] = {
    "Item size has exceeded",
    "Item size to update has exceeded",
    "Size of hashkey has exceeded",
    "Size of rangekey has exceeded",
    "Aggregated size of all hash keys has exceeded",
    "Aggregated size of all range keys has exceeded",
    "beyond allowed size limit", /* of an index's key */
    "Number overflow",
    "Number underflow",
    "more than 38 significant digits",
    "cannot be converted to a numeric value",
    "cannot contain an empty string value",
    "cannot contain an empty binary value",
    "Nesting Levels have exceeded",
    "contains duplicates",
};

static bool says(struct sl_span message, const char *text)
{
    return message.len && memmem(message.ptr, message.len, text, strlen(text));
}

static bool is_items(const char *service, struct sl_span code, struct sl_span message)
{
    if (strcmp(service, "DYNAMODB") != 0 ||
        (!sl_span_is(code, "ValidationException") && !sl_span_is(code, "ValidationError")))
        return false;
    for (size_t i = 0; i < SL_COUNT(item_texts); i++)
        if (says(message, item_texts[i]))
            return true;
    return false;
}

/* The KMS errors that each service passes on, spelt KMS... or Kms...: all but throttling are about the key.
 */
static bool is_of_kms(struct sl_span code, struct sl_code *out)
{
    if (!sl_span_starts(code, SL_LIT("KMS")) && !sl_span_starts(code, SL_LIT("Kms")))
        return false;
    bool throttled = says(code, "Throttl");
    *out = (struct sl_code){"", throttled ? SL_CODE_THROTTLE : SL_CODE_FINAL, throttled ? SL_RETRY : SL_FATAL,
                            false, throttled ? NULL : KMS_HINT};
    return true;
}

/* "Http403": the answer named no code. */
static bool is_nameless(struct sl_span code)
{
    return code.len == strlen("Http403") && sl_span_starts(code, SL_LIT("Http")) && code.ptr[4] >= '1' &&
           code.ptr[4] <= '9';
}

static struct sl_code judge_by_status(struct sl_span code, int http_status)
{
    if (http_status == 429)
        return (struct sl_code){"", SL_CODE_THROTTLE, SL_RETRY, false, NULL};
    if (http_status >= 500 || http_status == 408)
        return (struct sl_code){"", SL_CODE_TRANSIENT, SL_RETRY, false, NULL};
    if (http_status < 400)
        return (struct sl_code){"", SL_CODE_FINAL, SL_FATAL, false, NULL};
    if (is_nameless(code))
        return (struct sl_code){"", SL_CODE_TRANSIENT, SL_FATAL, false,
                                "this is not an answer of the service; check the endpoint and the proxy"};
    return (struct sl_code){"", SL_CODE_UNKNOWN, SL_FATAL, false, NULL};
}

struct sl_span sl_codes_name(struct sl_span code)
{
    struct sl_span old = SL_LIT("AWS.SimpleQueueService.");
    return sl_span_starts(code, old) ? sl_span_from(code, old.len) : code;
}

bool sl_codes_passes(struct sl_span code)
{
    struct sl_code kms;
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        if (sl_span_is(code, rows[i].is.code))
            return rows[i].is.kind != SL_CODE_FINAL && rows[i].is.kind != SL_CODE_UNKNOWN;
    return is_of_kms(code, &kms) && kms.kind == SL_CODE_THROTTLE;
}

struct sl_code sl_codes_find(const char *service, struct sl_span code, struct sl_span message,
                             int http_status)
{
    code = sl_codes_name(code);
    if (is_items(service, code, message))
        return (struct sl_code){"", SL_CODE_FINAL, SL_REJECT, false, NULL};
    for (size_t i = 0; i < SL_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        if (!sl_span_is(code, row->is.code) || (row->service && strcmp(service, row->service) != 0))
            continue;
        if (!row->says || says(message, row->says))
            return row->is;
    }
    struct sl_code kms;
    return is_of_kms(code, &kms) ? kms : judge_by_status(code, http_status);
}
