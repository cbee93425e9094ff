package bench;

import ca.uhn.fhir.context.FhirContext;
import ca.uhn.fhir.rest.api.EncodingEnum;
import ca.uhn.fhir.rest.server.FifoMemoryPagingProvider;
import ca.uhn.fhir.rest.server.HardcodedServerAddressStrategy;
import ca.uhn.fhir.rest.server.RestfulServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.util.TimeZone;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * The HAPI peer of the bench: a plain server with an Encounter provider, by its documented means.
 *
 * <p>Environment: PORT, JDBC_URL, PUBLIC_KEY (a file), ISSUER, AUDIENCE, BASE_URL. Further pages
 * are kept in the process, as its memory paging provider does; there is no Redis.
 */
public final class Peer {
  private static final int THREADS = 16;
  private static final int LARGEST_PAGE = 100;
  private static final int KEPT_SEARCHES = 1000;

  private Peer() {}

  public static void main(String[] arguments) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("Europe/Paris"));
    Server server = new Server(new QueuedThreadPool(THREADS + 8));
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(System.getenv("PORT")));
    server.addConnector(connector);
    ServletContextHandler context = new ServletContextHandler("/");
    context.addServlet(new ServletHolder(fhir()), "/fhir/*");
    server.setHandler(context);
    server.start();
    server.join();
  }

  private static RestfulServer fhir() throws Exception {
    RestfulServer fhir = new RestfulServer(FhirContext.forDstu3());
    fhir.setServerAddressStrategy(new HardcodedServerAddressStrategy(System.getenv("BASE_URL")));
    fhir.setDefaultResponseEncoding(EncodingEnum.JSON);
    FifoMemoryPagingProvider pages = new FifoMemoryPagingProvider(KEPT_SEARCHES);
    pages.setDefaultPageSize(LARGEST_PAGE);
    pages.setMaximumPageSize(LARGEST_PAGE);
    fhir.setPagingProvider(pages);
    fhir.registerInterceptor(new TokenCheck());
    fhir.registerProvider(new EncounterProvider(new Stays(database())));
    return fhir;
  }

  private static HikariDataSource database() {
    HikariConfig settings = new HikariConfig();
    settings.setJdbcUrl(System.getenv("JDBC_URL"));
    settings.setMaximumPoolSize(THREADS);
    settings.setReadOnly(true);
    return new HikariDataSource(settings);
  }
}
