/* The plain words of AWS's error messages: from the documentation of the errors of the services that are used
 * here (botocore's models), from the names of these errors and operations, and from the texts of libcurl and
 * of DynamoDB that tests have seen. Sorted, in lower case. Words that name people or things of users are left
 * out. */
#include "aws/mask_words.h"

#include "base/array.h"

#include <stdlib.h>

#define LONGEST 20

/* As many as fit a line. */
/* clang-format off */
static const char *const words[] = {
    "a", "abide", "abort", "aborted", "about", "above", "absent", "accelerate", "access", "accompanies",
    "account", "accounts", "acknowledge", "acl", "acls", "action", "actions", "activate", "activated",
    "activating", "active", "actual", "add", "added", "additional", "addpermission", "address", "addressed",
    "addressing", "administrator", "aes", "aes256", "affects", "after", "again", "against", "age",
    "agreement", "algorithm", "algorithms", "alias", "aliases", "all", "allow", "allowed", "allows",
    "already", "also", "amazon", "amazonaws", "amazondynamodb", "amz", "an", "analytics", "anchor", "and",
    "annotation", "annotations", "another", "answer", "any", "api", "application", "applications",
    "appropriate", "archive", "archived", "archives", "are", "argument", "arithmetic", "arn", "arns", "as",
    "asked", "assemble", "assigned", "associated", "assume", "assumed", "assuming", "at", "attempt",
    "attempted", "attempting", "attribute", "attributes", "auth", "authenticate", "authenticated",
    "authentication", "authorization", "authorized", "auto", "automatic", "automatically", "availability",
    "available", "aws", "b", "back", "backoff", "backup", "backuparn", "backups", "bad", "bandwidth", "base",
    "based", "batch", "be", "because", "becomes", "been", "before", "begin", "behalf", "being", "between",
    "beyond", "binary", "block", "body", "bool", "boolean", "boundary", "bp", "breaks", "broken", "bs",
    "bucket", "buckets", "bulk", "bus", "buses", "but", "by", "bytes", "calculated", "call", "called",
    "caller", "calls", "can", "cancel", "canceled", "cancellation", "cancels", "cannot", "capacity", "case",
    "cause", "caused", "causes", "center", "certificate", "chances", "change", "changes", "channel",
    "channels", "character", "characters", "check", "checksum", "ciphertext", "circumstances", "claim",
    "class", "client", "close", "closed", "cloud", "cloudwatch", "cluster", "clusters", "cm", "code", "codes",
    "collection", "column", "com", "combination", "combined", "command", "communication", "compatibility",
    "compatible", "complete", "completed", "completes", "completion", "complex", "comply", "compresses",
    "computed", "concatenation", "concurrent", "condition", "conditional", "conditions", "configuration",
    "configurations", "configure", "configured", "confirm", "conflict", "conflicting", "conflicts", "connect",
    "connected", "connection", "connections", "connectionstate", "connectivity", "consider", "console",
    "constraint", "constraints", "constructed", "consumer", "consumers", "contact", "contain", "contains",
    "content", "contents", "context", "continue", "continuous", "contributor", "control", "controls",
    "conversion", "convert", "converted", "copied", "copy", "copyobject", "correct", "correctly", "corrupted",
    "cors", "could", "count", "crc", "crc32", "create", "created", "createhsm", "createkey", "createtable",
    "creating", "credential", "credentials", "cryptographic", "current", "currently", "custom", "data",
    "datatype", "datatypes", "date", "deactivate", "deactivating", "deauthorize", "decapsulate",
    "decapsulating", "decode", "decompression", "decrease", "decrypt", "decrypting", "decryption",
    "deduplication", "deep", "default", "defined", "delay", "delegated", "delete", "deleted", "deleteitem",
    "deleterule", "deletetable", "deleting", "deletion", "delivery", "demand", "denied", "denies", "deny",
    "dependency", "depth", "deregister", "derive", "deriving", "describe", "describeclusters", "describekey",
    "describes", "description", "design", "destination", "destinations", "detail", "detailed", "details",
    "detected", "developer", "developerguide", "did", "didn", "differ", "different", "digest", "digit",
    "digits", "directory", "disable", "disabled", "disablerule", "disconnect", "disconnected",
    "disconnecting", "distinct", "distribution", "do", "docs", "document", "documentation", "does", "doesn",
    "don", "down", "dry", "dryrun", "due", "duplicate", "duplicated", "duplicates", "duration", "dynamodb",
    "each", "ec", "ec2", "either", "elapsed", "element", "elements", "empty", "enable", "enabled",
    "enablerule", "encapsulate", "encapsulating", "encoded", "encoding", "encrypt", "encrypted", "encrypting",
    "encryption", "end", "endpoint", "endpoints", "enhanced", "ensure", "ensures", "entire", "entirely",
    "entity", "entries", "entry", "enum", "enumeration", "equal", "equals", "error", "errors", "escalation",
    "evaluated", "even", "event", "eventbridge", "events", "eventually", "exactly", "example", "exceed",
    "exceeded", "exceeding", "exceeds", "except", "exception", "exceptions", "exchanged", "execute", "exist",
    "existent", "existing", "exists", "expectations", "expected", "expiration", "expired", "expires",
    "explicit", "explicitly", "exponential", "export", "exports", "exporttime", "expression", "expressions",
    "extend", "external", "failed", "fails", "failure", "feature", "federation", "fetch", "field", "file",
    "filter", "find", "finish", "firehose", "first", "flexible", "flight", "following", "follows", "for",
    "forbidden", "force", "format", "found", "fourth", "frequency", "from", "fulfill", "fulfilled",
    "function", "functions", "further", "future", "gateway", "general", "generate", "generaterandom",
    "generating", "get", "gethealthstatus", "getrecords", "getsharditerator", "getting", "given", "glacier",
    "global", "gmt", "go", "grant", "granted", "grantid", "grants", "greater", "group", "groups", "gsi", "gt",
    "guide", "guidelines", "had", "handle", "handling", "happen", "happened", "happens", "has", "hash",
    "have", "head", "header", "headers", "help", "hex", "high", "higher", "hmac", "hold", "host", "hostname",
    "hot", "hour", "hours", "how", "however", "hsm", "html", "http", "https", "iam", "id", "idempotency",
    "idempotent", "identification", "identifier", "identify", "identity", "idp", "ids", "if", "illegal",
    "impacted", "implemented", "import", "important", "imported", "importing", "imports", "in",
    "inaccessible", "inbound", "include", "included", "includes", "incoming", "incompatible", "incomplete",
    "inconsistent", "incorporated", "incorrect", "increase", "increasing", "increment", "index", "indexes",
    "indicate", "indicates", "indicating", "individual", "infinity", "inflight", "info", "information",
    "initialize", "inline", "input", "insert", "insights", "instances", "instructions", "insufficient",
    "intelligent", "internal", "interpret", "into", "invalid", "invalidated", "inventory", "is", "isn", "iso",
    "issue", "issuer", "issues", "it", "item", "items", "iterator", "its", "journal", "json", "key", "keyid",
    "keys", "keyspec", "keyusage", "keyword", "keywords", "kinesis", "kms", "ks", "l", "lambda", "large",
    "larger", "last", "later", "latest", "least", "legacy", "legal", "length", "less", "level", "levels",
    "lifecycle", "lifetime", "limit", "limited", "limits", "line", "list", "lists", "literal", "little",
    "live", "local", "location", "lock", "logging", "logs", "long", "longer", "lower", "lsi", "lt", "m",
    "made", "magnitude", "make", "malformed", "managed", "management", "manager", "many", "map", "marker",
    "master", "match", "material", "max", "maximum", "may", "md", "md5", "mean", "means", "media", "meet",
    "member", "members", "merge", "message", "messages", "met", "metadata", "method", "metrics", "might",
    "minimum", "minutes", "mismatch", "missing", "mode", "modification", "modified", "modify", "monitoring",
    "more", "most", "move", "moved", "multipart", "multiple", "must", "n", "name", "names", "namespace",
    "nan", "necessary", "need", "needed", "needs", "negative", "nested", "nesting", "network", "new", "newly",
    "next", "no", "non", "none", "nonexistent", "not", "note", "notification", "ns", "null", "nullable",
    "number", "numbers", "numeric", "object", "objects", "obtain", "occur", "occurred", "occurs", "octet",
    "of", "off", "offset", "often", "ok", "older", "oldest", "omitted", "on", "one", "ongoing", "only",
    "operand", "operands", "operating", "operation", "operations", "operator", "opt", "opted", "optional",
    "or", "order", "ordered", "organization", "original", "originally", "origination", "other", "otherwise",
    "our", "out", "outbound", "outside", "over", "overflow", "overlap", "overlapping", "own", "owned",
    "ownership", "owns", "packed", "pagination", "pair", "parameter", "parameters", "parse", "parsed",
    "parsing", "part", "particular", "partition", "partner", "parts", "passed", "passing", "password", "path",
    "paths", "pattern", "payer", "payload", "payment", "peer", "per", "percentage", "perform", "performing",
    "performs", "period", "permanent", "permanently", "permissible", "permission", "permissions", "permitted",
    "persist", "persists", "placeholder", "plain", "plaintext", "platform", "please", "point", "polices",
    "policies", "policy", "poorly", "port", "ports", "position", "positive", "possible", "precision",
    "precondition", "preconditions", "prefix", "prerequisites", "present", "previous", "previously",
    "primary", "principal", "principals", "prior", "problem", "processed", "processes", "processing",
    "produced", "progress", "properties", "property", "protection", "provided", "provider", "provisioned",
    "provisioning", "proxy", "public", "publish", "purge", "purgequeue", "purposes", "put", "putitem",
    "putrule", "puttargets", "query", "queue", "queues", "queueurl", "quota", "quotas", "random", "range",
    "rate", "re", "reach", "reachable", "reached", "read", "reading", "reason", "reasons", "receipt",
    "receive", "received", "receivemessage", "receiving", "recently", "recipient", "recommendation",
    "recommended", "reconnect", "record", "records", "recovery", "recreate", "redaction", "redirect",
    "reduce", "reencrypt", "reference", "references", "refers", "refresh", "refused", "region", "regions",
    "register", "regular", "rejected", "related", "remaining", "removal", "remove", "removetargets", "rename",
    "repeatedly", "replay", "replays", "replica", "replicate", "replicated", "replication", "reply", "report",
    "reported", "represents", "request", "requested", "requests", "requesttimeout", "required",
    "requirements", "requires", "reserved", "reset", "resets", "resolve", "resource", "resources",
    "responding", "response", "restore", "restored", "restoredatetime", "restoreobject", "restoring",
    "restrictions", "result", "retention", "retirable", "retire", "retried", "retries", "retrieval",
    "retrieve", "retrieved", "retrieving", "retry", "retrying", "returned", "returns", "revision", "revoke",
    "revoked", "role", "root", "rotate", "rotation", "rotations", "rule", "rules", "run", "running", "s",
    "s3", "same", "satisfies", "satisfy", "save", "scaling", "scan", "schedule", "scheduled", "schema",
    "scope", "scp", "sdk", "sdks", "search", "second", "secondary", "seconds", "secret", "secrets",
    "security", "see", "select", "self", "semantically", "send", "sending", "sendmessagebatch", "sent",
    "separate", "sequence", "sequentially", "server", "service", "services", "session", "set", "setting",
    "settings", "several", "sg", "sha", "sha1", "sha256", "shard", "shards", "share", "shared", "shares",
    "short", "should", "side", "sign", "signature", "signed", "significant", "signing", "sigv", "similar",
    "simple", "simultaneous", "simultaneously", "since", "single", "size", "skewed", "slow", "small", "sns",
    "so", "sockettimeout", "sort", "source", "sourcekeyid", "sources", "spec", "specific", "specification",
    "specifications", "specified", "specifies", "specify", "split", "sqs", "ss", "ssl", "stale", "start",
    "started", "starting", "state", "statement", "states", "status", "stop", "storage", "store", "stored",
    "stores", "strategy", "stream", "streaming", "streams", "string", "sts", "subject", "submit", "submitted",
    "subnet", "subnets", "subscribe", "subscriber", "subscription", "subscriptions", "subsequent",
    "successful", "successfully", "such", "summary", "supplied", "support", "supported", "supports", "sure",
    "symmetric", "syntactically", "syntax", "system", "t", "table", "tablename", "tables", "tag", "tagging",
    "tagresource", "tags", "take", "taken", "target", "targets", "task", "tasks", "temporarily", "ten",
    "test", "text", "than", "that", "the", "them", "then", "there", "these", "they", "third", "this", "those",
    "though", "three", "throttl", "throttled", "throttles", "throttling", "throttlingerror",
    "throttlingreason", "through", "throughput", "thrown", "throws", "tier", "tiering", "time", "timed",
    "timeline", "timeout", "times", "tls", "to", "together", "token", "tokens", "too", "topic", "topics",
    "torrent", "total", "trade", "traffic", "transact", "transactgetitems", "transaction", "transfer",
    "transient", "tried", "trigger", "trim", "trimmed", "trimming", "try", "trying", "two", "type", "types",
    "unable", "unauthorized", "unavailable", "undefined", "under", "underflow", "unexpected", "unique",
    "unknown", "unless", "unprocessed", "unreachable", "unrecognized", "unrelated", "unsubscribe",
    "unsupported", "untag", "untagresource", "until", "untrusted", "unused", "up", "update", "updated",
    "updateitem", "updatetable", "updatetimetolive", "upload", "uploads", "upper", "uri", "url", "us",
    "usage", "use", "used", "user", "users", "uses", "using", "utc", "utf", "v", "valid", "validated",
    "validation", "validationerror", "value", "values", "vectors", "vendor", "verification", "verify",
    "verifying", "version", "versionid", "versioning", "versions", "view", "violates", "visibility", "vpc",
    "wait", "warm", "was", "we", "web", "website", "well", "were", "what", "when", "where", "which", "while",
    "whose", "why", "width", "will", "window", "with", "within", "without", "work", "would", "wrapped",
    "write", "writes", "writing", "wrong", "xks", "xkskeyid", "xksproxyuripath", "xml", "xx", "yet", "you",
    "your", "zone", "zones",
};
/* clang-format on */

static int compare(const void *word, const void *entry)
{
    return strcmp(word, *(const char *const *)entry);
}

bool sl_mask_is_plain(struct sl_span word)
{
    char lower[LONGEST + 1];
    if (word.len == 0 || word.len > LONGEST)
        return false;
    for (size_t i = 0; i < word.len; i++)
        lower[i] = word.ptr[i] >= 'A' && word.ptr[i] <= 'Z' ? (char)(word.ptr[i] - 'A' + 'a') : word.ptr[i];
    lower[word.len] = '\0';
    return bsearch(lower, words, SL_COUNT(words), sizeof(words[0]), compare) != NULL;
}
