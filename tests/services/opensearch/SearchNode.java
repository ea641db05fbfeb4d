import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** A single OpenSearch node for the tests: SearchNode FOLDER PORT [SETTING=VALUE...]. */
final class SearchNode extends Node {
    private SearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, PainlessPlugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder().put("path.home", arguments[0]).put("http.port", arguments[1])
            .put("network.host", "127.0.0.1").put("transport.type", "netty4").put("http.type", "netty4")
            .put("discovery.type", "single-node").put("cluster.name", "sluice-tests").put("node.name", "tests");
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Node node = new SearchNode(InternalSettingsPreparer.prepareEnvironment(settings.build(), java.util.Map.of(), null, () -> "tests"));
        node.start();
        Thread.currentThread().join();
    }
}
