package bench;

import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateRangeParam;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.hl7.fhir.dstu3.model.Encounter.EncounterStatus;
import org.hl7.fhir.instance.model.api.IBaseResource;
import org.hl7.fhir.instance.model.api.IPrimitiveType;
import org.hl7.fhir.dstu3.model.InstantType;

/** A search as conditions and values, and its result: rows first, a total where they are not all. */
public final class Question {
  private static final String SERVED =
      "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)";

  static final ZoneId PARIS = ZoneId.of("Europe/Paris");

  private final Stays stays;
  private final List<String> conditions = new ArrayList<>(List.of(SERVED));
  private final List<Object> values = new ArrayList<>();
  private boolean isFew;
  private String column = "date_entree";
  private String direction = "DESC";

  public Question(Stays stays) {
    this.stays = stays;
  }

  public void withIds(List<String> ids) {
    isFew = true;
    meet("sejour_id = ANY(?)", ids.stream().map(Integer::valueOf).toArray(Integer[]::new));
  }

  public void ofPatient(long id) {
    isFew = true;
    meet("patient_id = ?", id);
  }

  public void ofUnit(String code) {
    meet("uf_courante = ?", code);
  }

  public void withNumber(String system, String number) {
    isFew = true;
    meet("num_venue = ?", number);
    if (system != null) {
      meet("etab_id = ANY(?)", own(Resources.SYSTEM, system).toArray(Integer[]::new));
    }
  }

  public void inStatus(String code) {
    EncounterStatus status = EncounterStatus.valueOf(code.toUpperCase().replace("-", ""));
    meet("etat = ANY(?)", own(Resources.STATUS, status).toArray(String[]::new));
  }

  public void ofClass(String code) {
    meet("type_sejour = ANY(?)", own(Resources.CLASS, code).toArray(String[]::new));
  }

  public void within(String column, ZoneId zone, DateRangeParam range) {
    if (range.getLowerBound() != null) {
      meet(column + " >= ?", local(range.getLowerBound().getValueAsString(), zone));
    }
    if (range.getUpperBound() != null) {
      meet(column + " < ?", local(range.getUpperBound().getValueAsString(), zone));
    }
  }

  public void sorted(String parameter, boolean isDescending) {
    column = parameter.equals("date") ? "date_entree" : "maj_utc";
    direction = isDescending ? "DESC" : "ASC";
  }

  private static LocalDateTime local(String text, ZoneId zone) {
    return text.length() == 10
        ? LocalDate.parse(text).atStartOfDay()
        : OffsetDateTime.parse(text).atZoneSameInstant(zone).toLocalDateTime();
  }

  private static <K, V> List<K> own(Map<K, V> table, V code) {
    return table.entrySet().stream()
        .filter(entry -> entry.getValue().equals(code))
        .map(Map.Entry::getKey)
        .toList();
  }

  private void meet(String condition, Object value) {
    conditions.add(condition);
    values.add(value);
  }

  public IBundleProvider page(int size, boolean isCounted) {
    String where = String.join(" AND ", conditions);
    String present = isFew ? "" : " AND " + column + " IS NOT NULL";
    String nulls = isFew ? " NULLS LAST" : "";
    String order = " ORDER BY " + column + " " + direction + nulls + ", sejour_id " + direction;
    List<Object> bound = new ArrayList<>(values);
    bound.add(size + 1);
    List<IBaseResource> found = stays.find(where + present + order + " LIMIT ?", bound);
    Integer total = found.size();
    if (found.size() > size) {
      total = isCounted ? Integer.valueOf(stays.count(where, values)) : null;
    }
    return new Result(found, total, size);
  }

  private record Result(List<IBaseResource> found, Integer total, int pageSize)
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
