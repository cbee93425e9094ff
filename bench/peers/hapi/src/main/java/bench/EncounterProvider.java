package bench;

import ca.uhn.fhir.rest.annotation.Count;
import ca.uhn.fhir.rest.annotation.IdParam;
import ca.uhn.fhir.rest.annotation.OptionalParam;
import ca.uhn.fhir.rest.annotation.Read;
import ca.uhn.fhir.rest.annotation.Search;
import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateRangeParam;
import ca.uhn.fhir.rest.param.ReferenceParam;
import ca.uhn.fhir.rest.param.TokenParam;
import ca.uhn.fhir.rest.server.IResourceProvider;
import ca.uhn.fhir.rest.server.exceptions.ResourceNotFoundException;
import org.hl7.fhir.dstu3.model.Encounter;
import org.hl7.fhir.dstu3.model.IdType;
import org.hl7.fhir.instance.model.api.IBaseResource;

/** Encounter: read and search. */
public final class EncounterProvider implements IResourceProvider {
  private final Stays stays;

  public EncounterProvider(Stays stays) {
    this.stays = stays;
  }

  @Override
  public Class<? extends IBaseResource> getResourceType() {
    return Encounter.class;
  }

  @Read
  public Encounter read(@IdParam IdType id) {
    Encounter found = stays.read(id.getIdPartAsLong());
    if (found == null) {
      throw new ResourceNotFoundException(id);
    }
    return found;
  }

  @Search
  public IBundleProvider search(
      @OptionalParam(name = "patient") ReferenceParam patient,
      @OptionalParam(name = "functional-unit") TokenParam unit,
      @OptionalParam(name = "date") DateRangeParam date,
      @Count Integer count) {
    Question question = new Question(stays);
    if (patient != null) {
      question.ofPatient(patient.getIdPartAsLong());
    }
    if (unit != null) {
      question.ofUnit(unit.getValue());
    }
    if (date != null) {
      question.between(
          date.getLowerBound().getValueAsString(), date.getUpperBound().getValueAsString());
    }
    return question.page(count == null ? 100 : count);
  }
}
