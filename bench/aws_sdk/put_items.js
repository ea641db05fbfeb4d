// 5,000 conditional PutItems of about 600 bytes through AWS's SDK, as bench_requests.c does them through our own client: on the same endpoint, once
// without being measured and once for the figures, with so many in flight as the agent has sockets. Prints milliseconds and microseconds of
// processor time. Run by bench_requests.c: node put_items.js URL WRITES [MAX_SOCKETS].
const { DynamoDBClient, PutItemCommand } = require("@aws-sdk/client-dynamodb");
const { NodeHttpHandler } = require("@smithy/node-http-handler");
const { Agent } = require("http");

const [endpoint, writes, sockets] = process.argv.slice(2);
const client = new DynamoDBClient({
  endpoint, region: "us-east-1", credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" },
  ...(sockets ? { requestHandler: new NodeHttpHandler({ httpAgent: new Agent({ keepAlive: true, maxSockets: Number(sockets) }) }) } : {}),
});
const IN_FLIGHT = Number(sockets || 50); // the default agent's sockets

function command(i) {
  return new PutItemCommand({
    TableName: "tbl",
    Item: { PK: { S: `customer#${String(i).padStart(6, "0")}` }, SK: { S: `order#${i}` }, status: { S: "SHIPPED" },
            note: { S: `as orders are: ${String(i).padStart(150, "0")}` } },
    ConditionExpression: "attribute_not_exists(#k)", ExpressionAttributeNames: { "#k": "PK" },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  });
}

async function writeAll(n) {
  let next = 0;
  const lane = async () => { while (next < n) await client.send(command(next++)); };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

async function main() {
  await writeAll(Number(writes));
  const began = process.hrtime.bigint(), used = process.cpuUsage();
  await writeAll(Number(writes));
  const cpu = process.cpuUsage(used);
  console.log(Number(process.hrtime.bigint() - began) / 1e6, cpu.user + cpu.system);
  client.destroy();
}

main().catch((error) => { console.error(error); process.exit(1); });
