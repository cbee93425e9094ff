package r4;

import ca.uhn.fhir.rest.annotation.IdParam;
import ca.uhn.fhir.rest.annotation.OptionalParam;
import ca.uhn.fhir.rest.annotation.Read;
import ca.uhn.fhir.rest.annotation.Search;
import ca.uhn.fhir.rest.annotation.Sort;
import ca.uhn.fhir.rest.api.SortSpec;
import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateRangeParam;
import ca.uhn.fhir.rest.param.StringAndListParam;
import ca.uhn.fhir.rest.param.TokenAndListParam;
import ca.uhn.fhir.rest.server.IResourceProvider;
import java.util.List;
import java.util.Map;
import org.hl7.fhir.r4.model.IdType;
import org.hl7.fhir.r4.model.Organization;

/** Organization: read and search. */
public final class Organizations implements IResourceProvider {
  private final Store store;

  Organizations(Store store) {
    this.store = store;
  }

  @Override
  public Class<Organization> getResourceType() {
    return Organization.class;
  }

  @Read
  public Organization read(@IdParam IdType id) {
    return store.read(Organization.class, id);
  }

  @Search
  public IBundleProvider search(
      @OptionalParam(name = "_id") TokenAndListParam ids,
      @OptionalParam(name = "identifier") TokenAndListParam identifier,
      @OptionalParam(name = "name") StringAndListParam name,
      @OptionalParam(name = "_lastUpdated") DateRangeParam updated,
      @Sort SortSpec sort) {
    return store.search(
        Organization.class,
        sort,
        Map.of("_lastUpdated", o -> o.getMeta().getLastUpdated()),
        List.of(
            Store.ids(ids),
            Store.tokens(identifier, Organization::getIdentifier),
            Store.texts(name, o -> o.hasName() ? List.of(o.getName()) : List.of()),
            Store.dates(updated, o -> o.getMeta().getLastUpdatedElement(),
                o -> o.getMeta().getLastUpdatedElement())));
  }
}
