/**
 * Sluice on a table, as a construct. What it makes is what template.yaml makes: the same file, without SAM, in a nested stack. So
 * the function's rights, the mapping, the alarms and the dashboard are described in one place.
 */
import { spawnSync } from 'child_process';
import * as fs from 'fs';
import * as os from 'os';
import * as path from 'path';
import { Fn, Names, NestedStack, NestedStackProps, Stack } from 'aws-cdk-lib';
import * as cloudformation from 'aws-cdk-lib/cloudformation-include';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as s3 from 'aws-cdk-lib/aws-s3';
import * as assets from 'aws-cdk-lib/aws-s3-assets';
import * as secretsmanager from 'aws-cdk-lib/aws-secretsmanager';
import * as sns from 'aws-cdk-lib/aws-sns';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import { unzipSync } from 'fflate';

/** What Sluice reads, what it does, and where to. */
export interface SluiceProps {
  /** The table whose changes are read. Its stream needs the images that the routes look into; both, at best. */
  readonly table: dynamodb.ITable;

  /** The path of the configuration, sluice.json. */
  readonly config: string;

  /** The zip for Lambda of a release, sluice-VERSION-lambda-aarch64.zip, or a folder with what is in it. */
  readonly code: string;

  /**
   * The processor that the zip is for.
   * @default - arm64
   */
  readonly architecture?: lambda.Architecture;

  /**
   * The command `sluice`. It checks the configuration, and says what the mapping can keep back.
   * @default - sluice, from PATH
   */
  readonly command?: string;

  /**
   * The patterns of the mapping, five at most; a change passes if any of them matches it. An empty list lets every change through.
   * @default - what `sluice check --filters` prints for the configuration
   */
  readonly filters?: string[];

  /** ARCHIVE_BUCKET in the configuration: a bucket that archives are written to. */
  readonly archiveBucket?: s3.IBucket;

  /**
   * What the function may write in that bucket.
   * @default - expired/
   */
  readonly archivePrefix?: string;

  /** REPLICA_TABLE and REPLICA_REGION in the configuration: a table to replicate to. */
  readonly replicaTable?: dynamodb.ITable;

  /** TOTALS_TABLE in the configuration: a table for counters. */
  readonly totalsTable?: dynamodb.ITable;

  /** Tables that the configuration names for ledgers, guards, tombstones and views. Ten at most. */
  readonly sideTables?: dynamodb.ITable[];

  /** Values for ${NAME} in the configuration. A secret is named here, and never written: `${ssm:...}`, `${secretsmanager:...}`. */
  readonly variables?: { [name: string]: string };

  /** Secrets that the function may read. Ten at most. */
  readonly secrets?: secretsmanager.ISecret[];

  /** Parameters of Systems Manager that the function may read. Ten at most. */
  readonly parameters?: ssm.IParameter[];

  /** Where the alarms go. */
  readonly alarmTopic?: sns.ITopic;

  /** Encrypts the logs, the queues, the buckets, the variables and the filters. */
  readonly encryptionKey?: kms.IKey;

  /** Subnets that the function runs in, for targets in a network; with `securityGroups`. */
  readonly subnets?: ec2.ISubnet[];

  /** The function's security groups, with `subnets`. */
  readonly securityGroups?: ec2.ISecurityGroup[];

  /**
   * Values for other parameters of the template, by their names (docs/DEPLOY.md): BatchSize, ParallelizationFactor, SetAside...
   * They go before what is said above.
   */
  readonly settings?: { [name: string]: string };
}

/** A stack of its own in the stack, so that names which the template takes from its stack stay different. */
class Nest extends NestedStack {
  constructor(scope: Construct, id: string, props?: NestedStackProps) {
    super(scope, id, props);
    // The stack's name becomes a part of other names, of 80 characters at most.
    this.nestedStackResource?.overrideLogicalId(Names.uniqueResourceName(this, { maxLength: 32 }));
  }
}

/** A function that consumes the stream of a table as a sluice.json says, with all that belongs to it. */
export class Sluice extends Construct {
  /** The stack that has its resources. */
  public readonly stack: NestedStack;
  /** The function. */
  public readonly function: lambda.IFunction;
  /** Where Lambda sends what it gave up on, and `on_failure` of the configuration may send records to: FAILURE_QUEUE there. */
  public readonly failureQueue: sqs.IQueue;

  constructor(scope: Construct, id: string, props: SluiceProps) {
    super(scope, id);
    // A TableV2 names a stream also where it has none.
    const made = props.table.node.defaultChild;
    const isWithout = (made instanceof dynamodb.CfnTable || made instanceof dynamodb.CfnGlobalTable) &&
      !Stack.of(made).resolve(made.streamSpecification);
    if (!props.table.tableStreamArn || isWithout) {
      throw new Error(`${this.node.path}: the table has no stream: give it stream: StreamViewType.NEW_AND_OLD_IMAGES, or import it with tableStreamArn`);
    }
    if (!props.subnets?.length !== !props.securityGroups?.length) {
      throw new Error(`${this.node.path}: subnets and securityGroups belong together`);
    }
    const filters = props.filters ?? this.filtersOf(props);
    if (filters.length > 5) {
      throw new Error(`${this.node.path}: a mapping takes five filters, and these are ${filters.length}`);
    }
    this.stack = new Nest(this, 'Stack');
    const code = new assets.Asset(this.stack, 'Code', { path: this.task(props) });
    const template = new cloudformation.CfnInclude(this.stack, 'Template', {
      templateFile: path.join(__dirname, '..', 'sluice.json'),
      parameters: {
        ...present({
          CodeBucket: code.s3BucketName,
          CodeKey: code.s3ObjectKey,
          ConfigFile: 'sluice.json',
          SourceStreamArn: props.table.tableStreamArn,
          Architecture: props.architecture?.name,
          ArchiveBucketName: props.archiveBucket?.bucketName,
          ArchivePrefix: props.archivePrefix,
          ReplicaTableArn: props.replicaTable?.tableArn,
          TotalsTableArn: props.totalsTable?.tableArn,
          SideTableArns: list(props.sideTables?.map((table) => table.tableArn)),
          Variables: props.variables && JSON.stringify(props.variables),
          SecretArns: list(props.secrets?.map((secret) => secret.secretArn)),
          ParameterArns: list(props.parameters?.map((parameter) => parameter.parameterArn)),
          AlarmTopicArn: props.alarmTopic?.topicArn,
          KmsKeyArn: props.encryptionKey?.keyArn,
          VpcSubnetIds: list(props.subnets?.map((subnet) => subnet.subnetId)),
          VpcSecurityGroupIds: list(props.securityGroups?.map((group) => group.securityGroupId)),
        }),
        ...Object.fromEntries(filters.map((filter, n) => [`Filter${n + 1}`, filter])),
        ...props.settings,
      },
    });
    this.function = lambda.Function.fromFunctionArn(this, 'Function', template.getResource('SluiceFunction').getAtt('Arn').toString());
    this.failureQueue = sqs.Queue.fromQueueArn(this, 'FailureQueue', template.getResource('FailureQueue').getAtt('Arn').toString());
  }

  /** What lies in /var/task: the release's files and the configuration. */
  private task(props: SluiceProps): string {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-cdk-'));
    process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
    if (fs.statSync(props.code).isDirectory()) {
      fs.cpSync(props.code, folder, { recursive: true });
    } else {
      for (const [name, bytes] of Object.entries(unzipSync(new Uint8Array(fs.readFileSync(props.code))))) {
        const file = path.resolve(folder, name);
        if (!file.startsWith(folder + path.sep)) {
          throw new Error(`${props.code}: ${name} lies outside of the function's folder`);
        }
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, bytes, { mode: /^bootstrap$|^lib\/|^handlers\//.test(name) ? 0o755 : 0o644 });
      }
    }
    if (!fs.existsSync(path.join(folder, 'bootstrap'))) {
      throw new Error(`${props.code}: has no bootstrap: it is to be the zip for Lambda of a release`);
    }
    fs.copyFileSync(props.config, path.join(folder, 'sluice.json'));
    return folder;
  }

  private filtersOf(props: SluiceProps): string[] {
    const command = props.command ?? 'sluice';
    const values = Object.entries(props.variables ?? {}).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const done = spawnSync(command, ['check', '--filters', ...values, props.config], { encoding: 'utf8' });
    if (done.error) {
      throw new Error(`${this.node.path}: ${command} does not start (${done.error.message}): name the command of a release as \`command\`, or give \`filters\``);
    }
    if (done.status !== 0) {
      const said = done.stderr.trim() || `${command} check ended with ${done.status}`;
      throw new Error(`${this.node.path}: ${said} (with \`filters\`, the command is not asked)`);
    }
    return JSON.parse(done.stdout).Filters.map((filter: { Pattern: string }) => filter.Pattern);
  }
}

/** Without what is not given, or empty: the template has defaults. */
function present(values: { [name: string]: string | undefined }): { [name: string]: string } {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => !!entry[1]));
}

function list(parts?: string[]): string | undefined {
  return parts && Fn.join(',', parts);
}
