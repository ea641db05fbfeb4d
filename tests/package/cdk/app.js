// Apps with the construct, as its user would write them, one for each case: node app.js WORK SLUICE CODE CASE=CONFIG... Prints what each
// said, null if it was synthesized to WORK/out-CASE.
const [work, command, code, ...cases] = process.argv.slice(2);
const { App, CfnOutput, Stack } = require('aws-cdk-lib');
const { AttributeType, StreamViewType, TableV2 } = require('aws-cdk-lib/aws-dynamodb');
const { Architecture } = require('aws-cdk-lib/aws-lambda');
const { Bucket } = require('aws-cdk-lib/aws-s3');
const { Secret } = require('aws-cdk-lib/aws-secretsmanager');
const { Topic } = require('aws-cdk-lib/aws-sns');
const { Sluice } = require('sluice-cdk');

function synthesize(name, config) {
  const app = new App({ outdir: `${work}/out-${name}` });
  const shop = new Stack(app, 'Shop', { env: { region: 'eu-west-1', account: '123456789012' } });
  const table = (id) => new TableV2(shop, id, {
    partitionKey: { name: 'PK', type: AttributeType.STRING },
    dynamoStream: name === 'no-stream' ? undefined : StreamViewType.NEW_AND_OLD_IMAGES,
  });
  const more = {
    'all': () => ({
      architecture: Architecture.X86_64, archiveBucket: new Bucket(shop, 'Archive'), archivePrefix: 'old/', replicaTable: table('Replica'),
      totalsTable: table('Totals'), sideTables: [table('Ledger'), table('Guard')], variables: { SHOP: 'here' },
      secrets: [new Secret(shop, 'Hook')], alarmTopic: new Topic(shop, 'OnCall'), settings: { BatchSize: '777' },
    }),
    'six-filters': () => ({ filters: Array(6).fill('{"eventName":["INSERT"]}') }),
    'no-filters': () => ({ filters: [] }),
    'subnets': () => ({ subnets: [{ subnetId: 'subnet-1' }] }),
  }[name]?.() ?? {};
  const made = new Sluice(shop, 'Consumer', { table: table('Orders'), command, code, config, ...more });
  new CfnOutput(shop, 'Function', { value: made.function.functionArn });
  new CfnOutput(shop, 'Failures', { value: made.failureQueue.queueArn });
  // A second one stands beside it.
  if (name === 'two') new Sluice(shop, 'Other', { table: table('More'), command, code, config });
  app.synth();
}

const said = {};
for (const [name, config] of cases.map((text) => text.split('='))) {
  try {
    synthesize(name, config);
    said[name] = null;
  } catch (error) {
    said[name] = error.message;
  }
}
console.log(JSON.stringify(said));
