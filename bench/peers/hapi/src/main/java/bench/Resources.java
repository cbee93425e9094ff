package bench;

import ca.uhn.fhir.model.api.TemporalPrecisionEnum;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.Map;
import org.hl7.fhir.dstu3.model.CodeableConcept;
import org.hl7.fhir.dstu3.model.Coding;
import org.hl7.fhir.dstu3.model.DateTimeType;
import org.hl7.fhir.dstu3.model.Encounter;
import org.hl7.fhir.dstu3.model.Encounter.EncounterStatus;
import org.hl7.fhir.dstu3.model.Identifier;
import org.hl7.fhir.dstu3.model.Identifier.IdentifierUse;
import org.hl7.fhir.dstu3.model.Period;
import org.hl7.fhir.dstu3.model.Reference;
import org.hl7.fhir.dstu3.model.StringType;

/** A row of the hospital as an STU3 Encounter. */
final class Resources {
  private static final String UNIT = "https://example.org/fhir/StructureDefinition/functional-unit";
  private static final String ACT_CODE = "http://hl7.org/fhir/v3/ActCode";
  private static final String TYPES =
      "http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type";
  private static final int NEVER = 2999;

  static final Map<String, EncounterStatus> STATUS =
      Map.of(
          "P", EncounterStatus.PLANNED,
          "PA", EncounterStatus.PLANNED,
          "E", EncounterStatus.INPROGRESS,
          "EC", EncounterStatus.INPROGRESS,
          "R", EncounterStatus.INPROGRESS,
          "S", EncounterStatus.FINISHED,
          "T", EncounterStatus.FINISHED,
          "F", EncounterStatus.FINISHED);
  static final Map<String, String> CLASS =
      Map.ofEntries(
          Map.entry("URG", "EMER"), Map.entry("HC", "IMP"), Map.entry("HP", "IMP"),
          Map.entry("HS", "IMP"), Map.entry("PRE", "PRENC"), Map.entry("PAD", "PRENC"),
          Map.entry("EXT", "AMB"), Map.entry("CS", "AMB"), Map.entry("HDJ", "AMB"),
          Map.entry("SEA", "REC"), Map.entry("DIA", "REC"));
  private static final Map<String, String> LABEL =
      Map.of(
          "EMER", "emergency", "IMP", "inpatient encounter", "PRENC", "pre-admission",
          "AMB", "ambulatory", "REC", "recurring", "UNK", "unknown");
  static final Map<Integer, String> SYSTEM =
      Map.of(2, "urn:oid:1.2.250.1.999.1.2", 3, "urn:oid:1.2.250.1.999.1.3");

  private Resources() {}

  static Encounter encounter(ResultSet row) throws SQLException {
    Encounter stay = new Encounter();
    stay.setId(row.getString("sejour_id"));
    Timestamp changed = row.getTimestamp("maj");
    if (changed != null) {
      stay.getMeta().setLastUpdated(changed);
    }
    Reference hospital = new Reference("Organization/" + row.getString("etab_id"));
    stay.addIdentifier(visit(row, hospital));
    String state = row.getString("etat");
    stay.setStatus(state == null ? null : STATUS.get(state));
    stay.setSubject(new Reference("Patient/" + row.getString("patient_id")));
    stay.setPeriod(period(row));
    Reference provider = new Reference(hospital.getReference());
    provider.addExtension(UNIT, new StringType(row.getString("uf_courante")));
    stay.setServiceProvider(provider);
    String kind = row.getString("type_sejour");
    String code = kind == null ? "UNK" : CLASS.getOrDefault(kind, "UNK");
    stay.setClass_(new Coding(ACT_CODE, code, LABEL.get(code)));
    return stay;
  }

  private static Identifier visit(ResultSet row, Reference hospital) throws SQLException {
    Coding type = new Coding(TYPES, "VN", "Visit Number").setVersion("3.0.1");
    return new Identifier()
        .setUse(IdentifierUse.OFFICIAL)
        .setType(new CodeableConcept().addCoding(type))
        .setSystem(SYSTEM.get(row.getInt("etab_id")))
        .setValue(row.getString("num_venue"))
        .setAssigner(hospital);
  }

  private static Period period(ResultSet row) throws SQLException {
    Period period = new Period();
    Timestamp start = row.getTimestamp("date_entree");
    Timestamp end = row.getTimestamp("date_sortie");
    if (start != null) {
      period.setStartElement(new DateTimeType(start, TemporalPrecisionEnum.SECOND));
    }
    if (end != null && end.toLocalDateTime().getYear() != NEVER) {
      period.setEndElement(new DateTimeType(end, TemporalPrecisionEnum.SECOND));
    }
    return period;
  }
}
