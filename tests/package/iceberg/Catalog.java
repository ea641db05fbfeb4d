import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's own REST catalog, as its tests have it: Catalog WAREHOUSE prints the port and serves until its standard input ends. */
public class Catalog {
    public static void main(String[] arguments) throws Exception {
        InMemoryCatalog catalog = new InMemoryCatalog();
        catalog.initialize("catalog", Map.of(CatalogProperties.WAREHOUSE_LOCATION, arguments[0]));
        ServletContextHandler context = new ServletContextHandler();
        context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(context);
        server.start();
        System.out.println(connector.getLocalPort());
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }
}
