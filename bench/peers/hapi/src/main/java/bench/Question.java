package bench;

import ca.uhn.fhir.rest.api.server.IBundleProvider;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import org.hl7.fhir.instance.model.api.IBaseResource;
import org.hl7.fhir.instance.model.api.IPrimitiveType;
import org.hl7.fhir.dstu3.model.InstantType;

/** A search as conditions and values, and its result: rows first, a total where they are not all. */
public final class Question {
  private static final String SERVED =
      "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)";

  private final Stays stays;
  private final List<String> conditions = new ArrayList<>(List.of(SERVED));
  private final List<Object> values = new ArrayList<>();
  private boolean ofPatient;

  public Question(Stays stays) {
    this.stays = stays;
  }

  public void ofPatient(long id) {
    ofPatient = true;
    meet("patient_id = ?", id);
  }

  public void ofUnit(String code) {
    meet("uf_courante = ?", code);
  }

  public void between(String from, String before) {
    meet("date_entree >= ?", LocalDateTime.parse(from));
    meet("date_entree < ?", LocalDateTime.parse(before));
  }

  private void meet(String condition, Object value) {
    conditions.add(condition);
    values.add(value);
  }

  public IBundleProvider page(int size) {
    String where = String.join(" AND ", conditions);
    String present = ofPatient ? "" : " AND date_entree IS NOT NULL";
    String nulls = ofPatient ? " NULLS LAST" : "";
    String rest = where + present + " ORDER BY date_entree DESC" + nulls + ", sejour_id DESC LIMIT ?";
    List<Object> bound = new ArrayList<>(values);
    bound.add(size + 1);
    List<IBaseResource> found = stays.find(rest, bound);
    int total = found.size() > size ? stays.count(where, values) : found.size();
    return new Result(found, total, size);
  }

  private record Result(List<IBaseResource> found, int total, int pageSize)
      implements IBundleProvider {
    @Override
    public IPrimitiveType<java.util.Date> getPublished() {
      return InstantType.withCurrentTime();
    }

    @Override
    public List<IBaseResource> getResources(int from, int to) {
      return found.subList(Math.min(from, found.size()), Math.min(to, found.size()));
    }

    @Override
    public String getUuid() {
      return null;
    }

    @Override
    public Integer preferredPageSize() {
      return pageSize;
    }

    @Override
    public Integer size() {
      return total;
    }
  }
}
