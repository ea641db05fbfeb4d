import com.amazonaws.services.dynamodbv2.streamsadapter.AmazonDynamoDBStreamsAdapterClient;
import com.amazonaws.services.dynamodbv2.streamsadapter.StreamsSchedulerFactory;
import com.amazonaws.services.dynamodbv2.streamsadapter.adapter.DynamoDBStreamsClientRecord;
import com.amazonaws.services.dynamodbv2.streamsadapter.model.DynamoDBStreamsProcessRecordsInput;
import com.amazonaws.services.dynamodbv2.streamsadapter.polling.DynamoDBStreamsPollingConfig;
import com.amazonaws.services.dynamodbv2.streamsadapter.processor.DynamoDBStreamsShardRecordProcessor;
import java.net.URI;
import java.util.List;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.streams.DynamoDbStreamsClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.leases.LeaseManagementConfig;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.metrics.NullMetricsFactory;
import software.amazon.kinesis.processor.FormerStreamsLeasesDeletionStrategy;
import software.amazon.kinesis.processor.StreamTracker;

/**
 * A consumer as users of KCL 3 write it: prints each record's sequence number, and checkpoints after each batch.
 * Arguments: the stream's ARN, the endpoint, the lease table, the worker's name, the failover time in ms, "one" or "many" streams.
 * A line on standard input ends it in order.
 */
public class Consumer {
    private static synchronized void say(String what, String text) {
        System.out.println(what + " " + text);
        System.out.flush();
    }

    private static class Processor implements DynamoDBStreamsShardRecordProcessor {
        public void initialize(InitializationInput input) {
            say("begin", input.shardId() + " " + input.extendedSequenceNumber().sequenceNumber());
        }

        public void processRecords(DynamoDBStreamsProcessRecordsInput input) {
            try {
                for (DynamoDBStreamsClientRecord record : input.records())
                    say("record", record.sequenceNumber());
                if (!input.records().isEmpty()) {
                    input.checkpointer().checkpoint();
                    say("checkpoint", input.records().get(input.records().size() - 1).sequenceNumber());
                }
            } catch (Exception e) {
                say("failed", e.toString());
            }
        }

        public void leaseLost(LeaseLostInput input) {
            say("end", "lost");
        }

        public void shardEnded(ShardEndedInput input) {
            say("end", "ended");
            try {
                input.checkpointer().checkpoint();
            } catch (Exception e) {
                say("failed", e.toString());
            }
        }

        public void shutdownRequested(ShutdownRequestedInput input) {
            say("end", "asked");
            try {
                input.checkpointer().checkpoint();
            } catch (Exception e) {
                say("failed", e.toString());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        StaticCredentialsProvider keys =
            StaticCredentialsProvider.create(AwsBasicCredentials.create(System.getenv("AWS_ACCESS_KEY_ID"), "x"));
        Region region = Region.of(System.getenv("AWS_REGION"));
        URI endpoint = URI.create(args[1]);
        AmazonDynamoDBStreamsAdapterClient adapter = new AmazonDynamoDBStreamsAdapterClient(
            DynamoDbStreamsClient.builder().credentialsProvider(keys).region(region).endpointOverride(endpoint).build(), region);
        DynamoDbAsyncClient dynamodb =
            DynamoDbAsyncClient.builder().credentialsProvider(keys).region(region).endpointOverride(endpoint).build();
        CloudWatchAsyncClient cloudwatch =
            CloudWatchAsyncClient.builder().credentialsProvider(keys).region(region).endpointOverride(endpoint).build();
        InitialPositionInStreamExtended position =
            InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON);
        StreamTracker tracker = args[5].equals("one")
            ? StreamsSchedulerFactory.createSingleStreamTracker(args[0], position)
            : StreamsSchedulerFactory.createMultiStreamTracker(List.of(args[0]), position,
                new FormerStreamsLeasesDeletionStrategy.NoLeaseDeletionStrategy());
        ConfigsBuilder configs =
            new ConfigsBuilder(tracker, args[2], adapter, dynamodb, cloudwatch, args[3], Processor::new);
        LeaseManagementConfig leases = configs.leaseManagementConfig()
            .failoverTimeMillis(Long.parseLong(args[4])).shardSyncIntervalMillis(2000).leaseAssignmentIntervalMillis(1000L);
        leases.workerUtilizationAwareAssignmentConfig().disableWorkerMetrics(true);
        DynamoDBStreamsPollingConfig polling = new DynamoDBStreamsPollingConfig(adapter);
        polling.idleTimeBetweenReadsInMillis(100);
        polling.maxRecords(20);
        Scheduler scheduler = StreamsSchedulerFactory.createScheduler(configs.checkpointConfig(),
            configs.coordinatorConfig().parentShardPollIntervalMillis(500), leases, configs.lifecycleConfig(),
            configs.metricsConfig().metricsLevel(MetricsLevel.NONE).metricsFactory(new NullMetricsFactory()),
            configs.processorConfig().callProcessRecordsEvenForEmptyRecordList(false),
            configs.retrievalConfig().retrievalSpecificConfig(polling), adapter);
        Thread thread = new Thread(scheduler);
        thread.start();
        System.in.read();
        scheduler.startGracefulShutdown().get();
        say("stopped", args[3]);
        System.exit(0);
    }
}
