package bench;

import ca.uhn.fhir.rest.annotation.Count;
import ca.uhn.fhir.rest.annotation.IdParam;
import ca.uhn.fhir.rest.annotation.OptionalParam;
import ca.uhn.fhir.rest.annotation.Read;
import ca.uhn.fhir.rest.annotation.Search;
import ca.uhn.fhir.rest.annotation.Sort;
import ca.uhn.fhir.rest.api.SearchTotalModeEnum;
import ca.uhn.fhir.rest.api.SortOrderEnum;
import ca.uhn.fhir.rest.api.SortSpec;
import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateRangeParam;
import ca.uhn.fhir.rest.param.ReferenceParam;
import ca.uhn.fhir.rest.param.TokenOrListParam;
import ca.uhn.fhir.rest.param.TokenParam;
import ca.uhn.fhir.rest.server.IResourceProvider;
import ca.uhn.fhir.rest.server.exceptions.ResourceNotFoundException;
import java.time.ZoneOffset;
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
      @OptionalParam(name = "_id") TokenOrListParam ids,
      @OptionalParam(name = "patient") ReferenceParam patient,
      @OptionalParam(name = "unit") TokenParam unit,
      @OptionalParam(name = "identifier") TokenParam identifier,
      @OptionalParam(name = "status") TokenParam status,
      @OptionalParam(name = "class") TokenParam kind,
      @OptionalParam(name = "date") DateRangeParam date,
      @OptionalParam(name = "_lastUpdated") DateRangeParam changed,
      @Sort SortSpec sort,
      @Count Integer count,
      SearchTotalModeEnum total) {
    Question question = new Question(stays);
    if (ids != null) {
      question.withIds(ids.getValuesAsQueryTokens().stream().map(TokenParam::getValue).toList());
    }
    if (patient != null) {
      question.ofPatient(patient.getIdPartAsLong());
    }
    if (unit != null) {
      question.ofUnit(unit.getValue());
    }
    if (identifier != null) {
      question.withNumber(identifier.getSystem(), identifier.getValue());
    }
    if (status != null) {
      question.inStatus(status.getValue());
    }
    if (kind != null) {
      question.ofClass(kind.getValue());
    }
    if (date != null) {
      question.within("date_entree", Question.PARIS, date);
    }
    if (changed != null) {
      question.within("maj_utc", ZoneOffset.UTC, changed);
    }
    if (sort != null) {
      question.sorted(sort.getParamName(), sort.getOrder() == SortOrderEnum.DESC);
    }
    return question.page(count == null ? 10 : count, total != SearchTotalModeEnum.NONE);
  }
}
