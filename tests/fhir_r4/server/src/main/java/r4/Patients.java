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
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.hl7.fhir.r4.model.DateTimeType;
import org.hl7.fhir.r4.model.HumanName;
import org.hl7.fhir.r4.model.IdType;
import org.hl7.fhir.r4.model.Identifier;
import org.hl7.fhir.r4.model.Patient;
import org.hl7.fhir.r4.model.StringType;

/** Patient: read and search. */
public final class Patients implements IResourceProvider {
  private final Store store;

  Patients(Store store) {
    this.store = store;
  }

  @Override
  public Class<Patient> getResourceType() {
    return Patient.class;
  }

  @Read
  public Patient read(@IdParam IdType id) {
    return store.read(Patient.class, id);
  }

  @Search
  public IBundleProvider search(
      @OptionalParam(name = "_id") TokenAndListParam ids,
      @OptionalParam(name = "identifier") TokenAndListParam identifier,
      @OptionalParam(name = "name") StringAndListParam name,
      @OptionalParam(name = "family") StringAndListParam family,
      @OptionalParam(name = "given") StringAndListParam given,
      @OptionalParam(name = "birthdate") DateRangeParam birthdate,
      @OptionalParam(name = "gender") TokenAndListParam gender,
      @OptionalParam(name = "_lastUpdated") DateRangeParam updated,
      @Sort SortSpec sort) {
    return store.search(
        Patient.class,
        sort,
        Map.of("_lastUpdated", p -> p.getMeta().getLastUpdated()),
        List.of(
            Store.ids(ids),
            Store.tokens(identifier, Patient::getIdentifier),
            Store.texts(name, p -> parts(p, true, true)),
            Store.texts(family, p -> parts(p, true, false)),
            Store.texts(given, p -> parts(p, false, true)),
            Store.dates(birthdate, Patients::day, Patients::day),
            Store.tokens(gender, p -> p.hasGender()
                ? List.of(new Identifier().setValue(p.getGender().toCode())) : List.of()),
            Store.dates(updated, p -> p.getMeta().getLastUpdatedElement(),
                p -> p.getMeta().getLastUpdatedElement())));
  }

  private static DateTimeType day(Patient patient) {
    return patient.hasBirthDate()
        ? new DateTimeType(patient.getBirthDateElement().getValueAsString())
        : null;
  }

  private static List<String> parts(Patient patient, boolean family, boolean given) {
    List<String> parts = new ArrayList<>();
    for (HumanName name : patient.getName()) {
      if (family && name.hasFamily()) {
        parts.add(name.getFamily());
      }
      if (given) {
        name.getGiven().stream().map(StringType::getValue).forEach(parts::add);
      }
    }
    return parts;
  }
}
