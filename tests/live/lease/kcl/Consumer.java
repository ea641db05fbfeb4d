import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.auth.AWSStaticCredentialsProvider;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBClientBuilder;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBStreamsClientBuilder;
import com.amazonaws.services.dynamodbv2.streamsadapter.AmazonDynamoDBStreamsAdapterClient;
import com.amazonaws.services.dynamodbv2.streamsadapter.StreamsWorkerFactory;
import com.amazonaws.services.kinesis.clientlibrary.interfaces.v2.IRecordProcessor;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.InitialPositionInStream;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.KinesisClientLibConfiguration;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.ShutdownReason;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.Worker;
import com.amazonaws.services.kinesis.clientlibrary.types.InitializationInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ProcessRecordsInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ShutdownInput;
import com.amazonaws.services.kinesis.metrics.impl.NullMetricsFactory;
import com.amazonaws.services.kinesis.model.Record;
import java.util.concurrent.Executors;

/**
 * A consumer as KCL's users write it: prints each record's sequence number, and checkpoints after each batch.
 * Arguments: the stream's ARN, the endpoint, the lease table, the worker's name, LATEST or TRIM_HORIZON, the failover time in ms.
 * A line on standard input ends it in order.
 */
public class Consumer {
    private static synchronized void say(String what, String text) {
        System.out.println(what + " " + text);
        System.out.flush();
    }

    private static class Processor implements IRecordProcessor {
        public void initialize(InitializationInput input) {
            say("begin", input.getShardId() + " " + input.getExtendedSequenceNumber().getSequenceNumber());
        }

        public void processRecords(ProcessRecordsInput input) {
            try {
                for (Record record : input.getRecords())
                    say("record", record.getSequenceNumber());
                if (!input.getRecords().isEmpty()) {
                    input.getCheckpointer().checkpoint();
                    say("checkpoint", input.getRecords().get(input.getRecords().size() - 1).getSequenceNumber());
                }
            } catch (Exception e) {
                say("failed", e.toString());
            }
        }

        public void shutdown(ShutdownInput input) {
            say("end", input.getShutdownReason().toString());
            try {
                if (input.getShutdownReason() == ShutdownReason.TERMINATE)
                    input.getCheckpointer().checkpoint();
            } catch (Exception e) {
                say("failed", e.toString());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        AWSStaticCredentialsProvider keys =
            new AWSStaticCredentialsProvider(new BasicAWSCredentials(System.getenv("AWS_ACCESS_KEY_ID"), "x"));
        EndpointConfiguration endpoint = new EndpointConfiguration(args[1], System.getenv("AWS_REGION"));
        KinesisClientLibConfiguration config = new KinesisClientLibConfiguration(args[2], args[0], keys, args[3])
            .withRegionName(System.getenv("AWS_REGION"))
            .withInitialPositionInStream(InitialPositionInStream.valueOf(args[4]))
            .withFailoverTimeMillis(Long.parseLong(args[5]))
            .withIdleTimeBetweenReadsInMillis(100)
            .withMaxRecords(20)
            .withShardSyncIntervalMillis(2000)
            .withParentShardPollIntervalMillis(500);
        Worker worker = StreamsWorkerFactory.createDynamoDbStreamsWorker(
            Processor::new, config,
            new AmazonDynamoDBStreamsAdapterClient(AmazonDynamoDBStreamsClientBuilder.standard()
                .withCredentials(keys).withEndpointConfiguration(endpoint).build()),
            AmazonDynamoDBClientBuilder.standard().withCredentials(keys).withEndpointConfiguration(endpoint).build(),
            new NullMetricsFactory(), Executors.newCachedThreadPool());
        Thread thread = new Thread(worker);
        thread.start();
        System.in.read();
        worker.startGracefulShutdown().get();
        say("stopped", args[3]);
        System.exit(0);
    }
}
