package bench;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.hl7.fhir.dstu3.model.Encounter;
import org.hl7.fhir.instance.model.api.IBaseResource;

/** The table of stays. */
public final class Stays {
  private static final String SELECT =
      "SELECT sejour_id, etab_id, num_venue, patient_id, etat, type_sejour, date_entree,"
          + " date_sortie, uf_courante, maj_utc AT TIME ZONE 'UTC' AS maj FROM sejour WHERE ";

  private final DataSource database;

  public Stays(DataSource database) {
    this.database = database;
  }

  public Encounter read(long id) {
    List<IBaseResource> found =
        find("sejour_id = ? AND etat NOT IN ('A', 'AN', 'X', 'SUP')", List.of((int) id));
    return found.isEmpty() ? null : (Encounter) found.get(0);
  }

  public List<IBaseResource> find(String rest, List<Object> values) {
    try (Connection connection = database.getConnection();
        PreparedStatement statement = connection.prepareStatement(SELECT + rest);
        ResultSet rows = asked(statement, values)) {
      List<IBaseResource> found = new ArrayList<>();
      while (rows.next()) {
        found.add(Resources.encounter(rows));
      }
      return found;
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  public int count(String where, List<Object> values) {
    String text = "SELECT count(*) FROM sejour WHERE " + where;
    try (Connection connection = database.getConnection();
        PreparedStatement statement = connection.prepareStatement(text);
        ResultSet rows = asked(statement, values)) {
      rows.next();
      return rows.getInt(1);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  private static ResultSet asked(PreparedStatement statement, List<Object> values)
      throws SQLException {
    for (int place = 0; place < values.size(); place++) {
      statement.setObject(place + 1, values.get(place));
    }
    return statement.executeQuery();
  }
}
