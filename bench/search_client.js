// The official JavaScript client's bulk helper, on the records that bench_search writes: CPU and time for each. It compares nothing and
// keeps no order: the last write wins. Run by bench/search.sh where the package @opensearch-project/opensearch is installed.
const { Client } = require("@opensearch-project/opensearch");
const fs = require("fs");

function plain(value) {
  const [kind, content] = Object.entries(value)[0];
  switch (kind) {
    case "N": return Number(content);
    case "NULL": return null;
    case "L": return content.map(plain);
    case "M": return item(content);
    case "NS": return content.map(Number);
    default: return content;
  }
}

function item(map) {
  const out = {};
  for (const [name, value] of Object.entries(map)) out[name] = plain(value);
  return out;
}

async function main() {
  const [endpoint, index, ...events] = process.argv.slice(2);
  const client = new Client({ node: endpoint });
  let began, used, n = 0;
  for (const [i, path] of events.entries()) {
    const text = fs.readFileSync(path, "utf8");
    if (i === 1) { began = process.hrtime.bigint(); used = process.cpuUsage(); n = 0; }
    const records = JSON.parse(text).Records.filter((r) => r.dynamodb.NewImage);
    n += records.length;
    const result = await client.helpers.bulk({
      datasource: records,
      onDocument: (r) => [{ index: { _index: index, _id: `${r.dynamodb.Keys.PK.S}|${Object.values(r.dynamodb.Keys.SK)[0]}` } }, item(r.dynamodb.NewImage)],
    });
    if (result.failed) throw new Error(`${result.failed} documents failed`);
  }
  const cpu = process.cpuUsage(used), wall = Number(process.hrtime.bigint() - began) / 1e3;
  const figure = (name, value) => console.log(JSON.stringify({ figure: `the JavaScript client's bulk helper, ${name}`, value: Math.round(value * 100) / 100, unit: "us/record" }));
  figure("its CPU", (cpu.user + cpu.system) / n);
  figure("elapsed", wall / n);
}

main().catch((error) => { console.error(error); process.exit(1); });
