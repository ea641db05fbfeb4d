#include "sinks/aws/codes.h"

struct row {
    const char *service; /* NULL: any */
    const char *says;    /* the message must hold this; NULL: any */
    struct sl_code is;
};

#define KEYS_HINT   "look at the credentials that this process was given"
#define POLICY_HINT "the role's policy must allow it; a policy change takes some seconds to be seen"
#define SCHEMA_HINT "the table's key schema is another than the target's configuration says"
#define NAME_HINT   "look at the name, the region and the account"

/* The first row that fits counts: rows with a service or a message stand before the general ones. */
static const struct row rows[] = {
    /* Retryable in the SDKs' standard mode (botocore retries/standard.py, data/_retry.json). */
    {NULL, NULL, {"Throttling", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"ThrottlingException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"ThrottledException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"Throttled", SL_CODE_THROTTLE, SL_RETRY, false, NULL}}, /* SNS API pages */
    {NULL, NULL, {"RequestThrottled", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"RequestThrottledException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"TooManyRequestsException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"ProvisionedThroughputExceededException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"TransactionInProgressException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"RequestLimitExceeded", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"BandwidthLimitExceeded", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"LimitExceededException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"SlowDown", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"PriorRequestNotComplete", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"EC2ThrottledException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}},
    {NULL, NULL, {"RequestTimeout", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"RequestTimeoutException", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"ReplicatedWriteConflictException", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"TransactionConflictException", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"InternalServerError", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"InternalFailure", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"InternalException", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"InternalError", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"InternalErrorException", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL, NULL, {"ServiceUnavailable", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {NULL,
     NULL,
     {"ServiceUnavailableException", SL_CODE_THROTTLE, SL_RETRY, false, NULL}}, /* Firehose API page */
    /* Conditional writes (S3 user guide, "conditional-writes"): a race that the next attempt decides. */
    {"S3", NULL, {"ConditionalRequestConflict", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {"S3", NULL, {"OperationAborted", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {"S3",
     NULL,
     {"BadDigest", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}}, /* it arrived otherwise than sent */
    {"S3", NULL, {"XAmzContentSHA256Mismatch", SL_CODE_TRANSIENT, SL_RETRY, false, NULL}},
    {"S3", NULL, {"PreconditionFailed", SL_CODE_FINAL, SL_REJECT, false, "an object of this name is there"}},
    {"S3", NULL, {"NoSuchBucket", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {"S3", NULL, {"PermanentRedirect", SL_CODE_FINAL, SL_FATAL, false, "set the target's region="}},
    {"S3", NULL, {"KeyTooLongError", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {"S3", NULL, {"EntityTooLarge", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {"S3",
     NULL,
     {"InvalidStorageClass", SL_CODE_FINAL, SL_FATAL, false, "look at the target's storage_class="}},
    {"S3", NULL, {"InvalidTag", SL_CODE_FINAL, SL_FATAL, false, "look at the target's tags="}},
    /* Clock skew (the SDKs' lists, reference of Java v2 and JS v3). */
    {NULL, NULL, {"RequestTimeTooSkewed", SL_CODE_SKEW, SL_FATAL, false, "set this machine's clock"}},
    {NULL, NULL, {"RequestExpired", SL_CODE_SKEW, SL_FATAL, false, "set this machine's clock"}},
    {NULL, NULL, {"RequestInTheFuture", SL_CODE_SKEW, SL_FATAL, false, "set this machine's clock"}},
    {NULL, NULL, {"InvalidSignatureException", SL_CODE_SKEW, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"SignatureDoesNotMatch", SL_CODE_SKEW, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"AuthFailure", SL_CODE_SKEW, SL_FATAL, true, KEYS_HINT}},
    /* Credentials (common errors of the API references). */
    {NULL, NULL, {"ExpiredToken", SL_CODE_EXPIRED, SL_FATAL, true, "the credentials have expired"}},
    {NULL, NULL, {"ExpiredTokenException", SL_CODE_EXPIRED, SL_FATAL, true, "the credentials have expired"}},
    {NULL, NULL, {"TokenRefreshRequired", SL_CODE_EXPIRED, SL_FATAL, true, "the credentials have expired"}},
    {NULL, NULL, {"UnrecognizedClientException", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"InvalidClientTokenId", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"InvalidAccessKeyId", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"InvalidToken", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"MissingAuthenticationToken", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"MissingAuthenticationTokenException", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"IncompleteSignature", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"IncompleteSignatureException", SL_CODE_FINAL, SL_FATAL, true, KEYS_HINT}},
    {NULL, NULL, {"AuthorizationHeaderMalformed", SL_CODE_FINAL, SL_FATAL, true, "set the target's region="}},
    {NULL, NULL, {"NotAuthorizedForSourceException", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"NotAuthorizedForDetailTypeException", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL,
     NULL,
     {"NotImplemented", SL_CODE_FINAL, SL_FATAL, false, "this server does not know an option of the target"}},
    {NULL, NULL, {"MethodNotAllowed", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL, NULL, {"OptInRequired", SL_CODE_FINAL, SL_FATAL, false, NULL}},
    {NULL, NULL, {"AccessDenied", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"AccessDeniedException", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"NotAuthorized", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"NotAuthorizedException", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"AuthorizationError", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    {NULL, NULL, {"AuthorizationErrorException", SL_CODE_FINAL, SL_FATAL, false, POLICY_HINT}},
    /* What is not there (each service's API reference). */
    {NULL, NULL, {"ResourceNotFoundException", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL, NULL, {"TableNotFoundException", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL,
     NULL,
     {"ResourceInUseException", SL_CODE_TRANSIENT, SL_RETRY, false, "it is being made or changed"}},
    {NULL, NULL, {"QueueDoesNotExist", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL, NULL, {"AWS.SimpleQueueService.NonExistentQueue", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL, NULL, {"InvalidAddress", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {"SNS", NULL, {"NotFound", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {"SNS", "TopicArn", {"InvalidParameter", SL_CODE_FINAL, SL_FATAL, false, NAME_HINT}},
    {NULL,
     NULL,
     {"UnknownOperationException", SL_CODE_FINAL, SL_FATAL, false, "this endpoint is another service's"}},
    {NULL, NULL, {"UnsupportedOperation", SL_CODE_FINAL, SL_FATAL, false, NULL}},
    {NULL, NULL, {"InvalidAction", SL_CODE_FINAL, SL_FATAL, false, "this endpoint is another service's"}},
    /* DynamoDB: a key of the wrong shape is the configuration's fault, not this item's. The texts are those
     * of the service and of DynamoDB Local. */
    {NULL, "does not match the schema", {"ValidationException", SL_CODE_FINAL, SL_FATAL, false, SCHEMA_HINT}},
    {NULL, "Missing the key", {"ValidationException", SL_CODE_FINAL, SL_FATAL, false, SCHEMA_HINT}},
    {NULL,
     "required keys was not given",
     {"ValidationException", SL_CODE_FINAL, SL_FATAL, false, SCHEMA_HINT}},
    {NULL,
     "number of conditions on the keys",
     {"ValidationException", SL_CODE_FINAL, SL_FATAL, false, SCHEMA_HINT}},
    {NULL, "Type mismatch for key", {"ValidationException", SL_CODE_FINAL, SL_FATAL, false, SCHEMA_HINT}},
    {NULL, NULL, {"ValidationException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {NULL, NULL, {"ConditionalCheckFailedException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {NULL, NULL, {"ItemCollectionSizeLimitExceededException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {NULL, NULL, {"TransactionCanceledException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {NULL, NULL, {"IdempotentParameterMismatchException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
    {NULL, NULL, {"SerializationException", SL_CODE_FINAL, SL_REJECT, false, NULL}},
};

/* The KMS errors that each service passes on, spelt KMS..., Kms... or KMS....: all but throttling are about
 * the key. */
static bool is_of_kms(struct sl_span code, struct sl_code *out)
{
    if (!sl_span_starts(code, SL_LIT("KMS")) && !sl_span_starts(code, SL_LIT("Kms")))
        return false;
    bool throttled = memmem(code.ptr, code.len, "Throttl", 7) != NULL;
    *out = (struct sl_code){"", throttled ? SL_CODE_THROTTLE : SL_CODE_FINAL, throttled ? SL_RETRY : SL_FATAL,
                            false, throttled ? NULL : "look at the KMS key, its state and its policy"};
    return true;
}

static struct sl_code judge_by_status(int http_status)
{
    struct sl_code judged = {"", SL_CODE_FINAL, SL_REJECT, false, NULL};
    if (http_status == 429) {
        judged.kind = SL_CODE_THROTTLE;
        judged.status = SL_RETRY;
    } else if (http_status < 400 || http_status == 401 || http_status == 403 || http_status == 404 ||
               http_status == 405 || http_status == 501 || http_status == 505) {
        judged.status = SL_FATAL;
    } else if (http_status >= 500 || http_status == 408) {
        judged.kind = SL_CODE_TRANSIENT;
        judged.status = SL_RETRY;
    }
    return judged;
}

struct sl_code sl_codes_find(const char *service, struct sl_span code, struct sl_span message,
                             int http_status)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (!sl_span_is(code, row->is.code) || (row->service && strcmp(service, row->service) != 0))
            continue;
        if (!row->says || memmem(message.ptr, message.len, row->says, strlen(row->says)))
            return row->is;
    }
    struct sl_code kms;
    return is_of_kms(code, &kms) ? kms : judge_by_status(http_status);
}
