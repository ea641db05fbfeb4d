// node-postgres on the records that bench_search writes: a guarded upsert by a named statement, one transaction an event. CPU of this process
// and time for each record. Run by bench/postgres.sh where the package pg is installed.
const { Client } = require("pg");
const fs = require("fs");

const text = `INSERT INTO node AS t VALUES ($1, $2, $3::jsonb) ON CONFLICT ("PK", "SK") DO UPDATE SET item = excluded.item
WHERE NOT t.item ? 'sluice_order' OR (t.item->'sluice_order'->>'S') COLLATE "C" < excluded.item->'sluice_order'->>'S'`;

async function write(client, path) {
  const records = JSON.parse(fs.readFileSync(path, "utf8")).Records.filter((r) => r.dynamodb.NewImage);
  await client.query("BEGIN");
  for (const { dynamodb: d } of records) {
    const item = { ...d.NewImage, sluice_order: { S: d.SequenceNumber.padStart(40, "0") } };
    await client.query({ name: "upsert", text, values: [d.Keys.PK.S, Object.values(d.Keys.SK)[0], JSON.stringify(item)] });
  }
  await client.query("COMMIT");
  return records.length;
}

async function main() {
  const client = new Client();
  await client.connect();
  const [first, ...rest] = process.argv.slice(2);
  await write(client, first);
  const began = process.hrtime.bigint(), used = process.cpuUsage();
  let n = 0;
  for (const path of rest) n += await write(client, path);
  const cpu = process.cpuUsage(used), wall = Number(process.hrtime.bigint() - began) / 1e3;
  const figure = (name, value) => console.log(JSON.stringify({ figure: `node-postgres's guarded upsert, ${name}`, value: Math.round(value / n * 100) / 100, unit: "us/record" }));
  figure("its CPU", cpu.user + cpu.system);
  figure("elapsed", wall);
  await client.end();
}

main().catch((error) => { console.error(error); process.exit(1); });
