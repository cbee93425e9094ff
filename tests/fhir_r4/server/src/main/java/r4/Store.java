package r4;

import ca.uhn.fhir.rest.api.SortOrderEnum;
import ca.uhn.fhir.rest.api.SortSpec;
import ca.uhn.fhir.rest.api.server.IBundleProvider;
import ca.uhn.fhir.rest.param.DateParam;
import ca.uhn.fhir.rest.param.DateRangeParam;
import ca.uhn.fhir.rest.param.ParamPrefixEnum;
import ca.uhn.fhir.rest.param.ReferenceAndListParam;
import ca.uhn.fhir.rest.param.StringAndListParam;
import ca.uhn.fhir.rest.param.StringParam;
import ca.uhn.fhir.rest.param.TokenAndListParam;
import ca.uhn.fhir.rest.param.TokenParam;
import ca.uhn.fhir.rest.param.TokenParamModifier;
import ca.uhn.fhir.rest.server.SimpleBundleProvider;
import ca.uhn.fhir.rest.server.exceptions.ResourceNotFoundException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.hl7.fhir.r4.model.BaseDateTimeType;
import org.hl7.fhir.r4.model.Bundle;
import org.hl7.fhir.r4.model.DateTimeType;
import org.hl7.fhir.r4.model.IdType;
import org.hl7.fhir.r4.model.Identifier;
import org.hl7.fhir.r4.model.Resource;

/** The resources, and R4's search rules on them (https://hl7.org/fhir/R4/search.html). */
final class Store {
  private final List<Resource> resources = new ArrayList<>();

  Store(Bundle bundle) {
    bundle.getEntry().forEach(entry -> resources.add(entry.getResource()));
  }

  <T extends Resource> T read(Class<T> type, IdType id) {
    return all(type)
        .filter(each -> each.getIdElement().getIdPart().equals(id.getIdPart()))
        .findFirst()
        .orElseThrow(() -> new ResourceNotFoundException(id));
  }

  <T extends Resource> Stream<T> all(Class<T> type) {
    return resources.stream().filter(type::isInstance).map(type::cast);
  }

  /** Those that all predicates accept; resources without the sort key come last. */
  <T extends Resource> IBundleProvider search(
      Class<T> type, SortSpec sort, Map<String, Function<T, Date>> keys, List<Predicate<T>> all) {
    Comparator<T> order = Comparator.comparing(each -> each.getIdElement().getIdPart());
    boolean descends = sort != null && sort.getOrder() == SortOrderEnum.DESC;
    if (descends) {
      order = order.reversed();
    }
    if (sort != null && keys.containsKey(sort.getParamName())) {
      Comparator<Date> dates = Comparator.naturalOrder();
      Comparator<Date> last = Comparator.nullsLast(descends ? dates.reversed() : dates);
      order = Comparator.comparing(keys.get(sort.getParamName()), last).thenComparing(order);
    }
    Predicate<T> every = all.stream().reduce(each -> true, Predicate::and);
    return new SimpleBundleProvider(all(type).filter(every).sorted(order).toList());
  }

  static <T extends Resource> Predicate<T> ids(TokenAndListParam wanted) {
    return tokens(wanted, each -> List.of(new Identifier().setValue(each.getIdPart())));
  }

  static <T extends Resource> Predicate<T> tokens(
      TokenAndListParam wanted, Function<T, List<Identifier>> tokens) {
    return each ->
        wanted == null
            || wanted.getValuesAsQueryTokens().stream()
                .allMatch(or -> anyToken(or.getValuesAsQueryTokens(), tokens.apply(each)));
  }

  private static boolean anyToken(List<TokenParam> wanted, List<Identifier> tokens) {
    boolean matches =
        wanted.stream().anyMatch(w -> tokens.stream().anyMatch(token -> isToken(w, token)));
    boolean not = wanted.get(0).getModifier() == TokenParamModifier.NOT;
    return matches != not;
  }

  private static boolean isToken(TokenParam wanted, Identifier token) {
    boolean anySystem = wanted.getSystem() == null;
    String system = token.getSystem() == null ? "" : token.getSystem();
    return (anySystem || wanted.getSystem().equals(system))
        && (wanted.isEmpty() || wanted.getValue().equals(token.getValue()));
  }

  static <T extends Resource> Predicate<T> references(
      ReferenceAndListParam wanted, Function<T, String> id) {
    return each ->
        wanted == null
            || wanted.getValuesAsQueryTokens().stream()
                .allMatch(
                    or ->
                        or.getValuesAsQueryTokens().stream()
                            .anyMatch(param -> param.getIdPart().equals(id.apply(each))));
  }

  static <T extends Resource> Predicate<T> texts(
      StringAndListParam wanted, Function<T, List<String>> texts) {
    return each ->
        wanted == null
            || wanted.getValuesAsQueryTokens().stream()
                .allMatch(
                    or ->
                        or.getValuesAsQueryTokens().stream()
                            .anyMatch(
                                w -> texts.apply(each).stream().anyMatch(t -> isText(w, t))));
  }

  private static boolean isText(StringParam wanted, String text) {
    if (wanted.isExact()) {
      return text.equals(wanted.getValue());
    }
    String lower = text.toLowerCase();
    String value = wanted.getValue().toLowerCase();
    return wanted.isContains() ? lower.contains(value) : lower.startsWith(value);
  }

  /** A period matches by overlap, but "sa" compares its start and "eb" its end. */
  static <T extends Resource> Predicate<T> dates(
      DateRangeParam wanted, Function<T, BaseDateTimeType> start, Function<T, BaseDateTimeType> end) {
    return each ->
        wanted == null
            || (start.apply(each) != null
                && start.apply(each).hasValue()
                && (wanted.getLowerBound() == null
                    || isWithin(wanted.getLowerBound(), start.apply(each), end.apply(each)))
                && (wanted.getUpperBound() == null
                    || isWithin(wanted.getUpperBound(), start.apply(each), end.apply(each))));
  }

  private static boolean isWithin(DateParam bound, BaseDateTimeType start, BaseDateTimeType end) {
    DateTimeType value = new DateTimeType(bound.getValueAsString());
    Date low = value.getValue();
    DateTimeType after = new DateTimeType(bound.getValueAsString());
    after.add(after.getPrecision().getCalendarConstant(), 1);
    Date high = after.getValue();
    Date first = start.getValue();
    Date last = end == null || end.getValue() == null ? new Date(Long.MAX_VALUE) : end.getValue();
    ParamPrefixEnum prefix = bound.getPrefix() == null ? ParamPrefixEnum.EQUAL : bound.getPrefix();
    return switch (prefix) {
      case GREATERTHAN -> !last.before(high);
      case GREATERTHAN_OR_EQUALS -> !last.before(low);
      case STARTS_AFTER -> !first.before(high);
      case LESSTHAN -> first.before(low);
      case LESSTHAN_OR_EQUALS -> first.before(high);
      case ENDS_BEFORE -> last.before(low);
      default -> !first.before(low) && last.before(high);
    };
  }
}
