/* Stream records as tests write them. ' stands for ", so the finished text goes through json(). Every
 * argument is a string literal:
 *
 *     json(EVENT(RECORD("MODIFY", "101", KEYS(PK("a")) NEW(PK("a") ",'v':" N("2")) OLD(PK("a")))))
 */
#ifndef SL_TESTS_SUPPORT_EVENTS_H
#define SL_TESTS_SUPPORT_EVENTS_H

/* Attribute values, and the attribute that is the key of most items. */
#define S(text) "{'S':'" text "'}"
#define N(text) "{'N':'" text "'}"
#define PK(id)  "'PK':" S(id)

/* The members of "dynamodb" that hold attributes, in this order. */
#define KEYS(attributes) "'Keys':{" attributes "}"
#define NEW(attributes)  ",'NewImage':{" attributes "}"
#define OLD(attributes)  ",'OldImage':{" attributes "}"

/* A record as Lambda delivers it, of the table "orders". `seq` is its sequence number, `time` is in seconds,
 * `others` are further members of the record, each with a comma before it. */
#define RECORD_WITH(view, time, event, seq, attributes, others)                                              \
    "{'eventID':'e" seq "','eventName':'" event "','eventVersion':'1.1','eventSource':'aws:dynamodb',"       \
    "'awsRegion':'eu-west-1','dynamodb':{'ApproximateCreationDateTime':" time "," attributes                 \
    ",'SequenceNumber':'" seq "','SizeBytes':10,'StreamViewType':'" view "'},'eventSourceARN':"              \
    "'arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000'" others "}"
#define RECORD_OF(view, event, seq, attributes) RECORD_WITH(view, "1767265199", event, seq, attributes, "")
#define RECORD(event, seq, attributes)          RECORD_OF("NEW_AND_OLD_IMAGES", event, seq, attributes)

/* The removal of an item by DynamoDB's TTL. */
#define EXPIRED(seq, attributes)                                                                             \
    RECORD_WITH("NEW_AND_OLD_IMAGES", "1767265199", "REMOVE", seq, attributes,                               \
                ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}")

/* Of one to four records. */
#define EVENT(...)               "{'Records':[" LIST(__VA_ARGS__, LIST4, LIST3, LIST2, LIST1, )(__VA_ARGS__) "]}"
#define LIST(a, b, c, d, n, ...) n
#define LIST1(a)                 a
#define LIST2(a, b)              a "," b
#define LIST3(a, b, c)           a "," b "," c
#define LIST4(a, b, c, d)        a "," b "," c "," d

#endif
