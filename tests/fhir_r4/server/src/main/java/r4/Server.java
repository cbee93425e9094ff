package r4;

import ca.uhn.fhir.context.FhirContext;
import ca.uhn.fhir.rest.api.EncodingEnum;
import ca.uhn.fhir.rest.server.FifoMemoryPagingProvider;
import ca.uhn.fhir.rest.server.RestfulServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TimeZone;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.ServerConnector;
import org.hl7.fhir.r4.model.Bundle;

/** Serves the resources of a Bundle in a file below /fhir, and prints its port. */
public final class Server {
  private Server() {}

  public static void main(String[] arguments) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("Europe/Paris"));
    FhirContext context = FhirContext.forR4();
    String file = Files.readString(Path.of(arguments[0]));
    Store store = new Store(context.newJsonParser().parseResource(Bundle.class, file));
    RestfulServer fhir = new RestfulServer(context);
    fhir.setDefaultResponseEncoding(EncodingEnum.JSON);
    FifoMemoryPagingProvider pages = new FifoMemoryPagingProvider(1000);
    pages.setDefaultPageSize(20);
    pages.setMaximumPageSize(200);
    fhir.setPagingProvider(pages);
    fhir.registerProviders(
        new Encounters(store), new Patients(store), new Organizations(store));
    org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    server.addConnector(connector);
    ServletContextHandler handler = new ServletContextHandler("/");
    handler.addServlet(new ServletHolder(fhir), "/fhir/*");
    server.setHandler(handler);
    server.start();
    System.out.println(connector.getLocalPort());
    server.join();
  }
}
