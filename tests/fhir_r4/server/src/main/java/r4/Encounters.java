package r4;

import ca.uhn.fhir.rest.annotation.IdParam;
import ca.uhn.fhir.rest.annotation.OptionalParam;
import ca.uhn.fhir.rest.annotation.Read;
import ca.uhn.fhir.rest.annotation.Search;
import ca.uhn.fhir.rest.annotation.Sort;
import ca.uhn.fhir.rest.api.SortSpec;
import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateRangeParam;
import ca.uhn.fhir.rest.param.ReferenceAndListParam;
import ca.uhn.fhir.rest.param.TokenAndListParam;
import ca.uhn.fhir.rest.server.IResourceProvider;
import java.util.List;
import java.util.Map;
import org.hl7.fhir.r4.model.Encounter;
import org.hl7.fhir.r4.model.IdType;
import org.hl7.fhir.r4.model.Identifier;

/** Encounter: read and search. */
public final class Encounters implements IResourceProvider {
  private final Store store;

  Encounters(Store store) {
    this.store = store;
  }

  @Override
  public Class<Encounter> getResourceType() {
    return Encounter.class;
  }

  @Read
  public Encounter read(@IdParam IdType id) {
    return store.read(Encounter.class, id);
  }

  @Search
  public IBundleProvider search(
      @OptionalParam(name = "_id") TokenAndListParam ids,
      @OptionalParam(name = "patient") ReferenceAndListParam patient,
      @OptionalParam(name = "date") DateRangeParam date,
      @OptionalParam(name = "identifier") TokenAndListParam identifier,
      @OptionalParam(name = "status") TokenAndListParam status,
      @OptionalParam(name = "class") TokenAndListParam kind,
      @OptionalParam(name = "_lastUpdated") DateRangeParam updated,
      @Sort SortSpec sort) {
    return store.search(
        Encounter.class,
        sort,
        Map.of("date", e -> e.getPeriod().getStart(), "_lastUpdated", e -> e.getMeta().getLastUpdated()),
        List.of(
            Store.ids(ids),
            Store.references(patient, e -> e.getSubject().getReferenceElement().getIdPart()),
            Store.dates(date, e -> e.getPeriod().hasStart() ? e.getPeriod().getStartElement() : null,
                e -> e.getPeriod().getEndElement()),
            Store.tokens(identifier, Encounter::getIdentifier),
            Store.tokens(status, e -> List.of(new Identifier().setValue(e.getStatus().toCode()))),
            Store.tokens(kind, e -> List.of(new Identifier()
                .setSystem(e.getClass_().getSystem()).setValue(e.getClass_().getCode()))),
            Store.dates(updated, e -> e.getMeta().getLastUpdatedElement(),
                e -> e.getMeta().getLastUpdatedElement())));
  }
}
