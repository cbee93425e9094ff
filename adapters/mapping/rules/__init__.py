"""What the keys of a mapping file say about each other: one function a rule.

A rule looks at a document whose shape may be faulty in parts, and yields each problem
that it finds; it keeps silent about a part whose shape has been refused already.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from adapters.mapping.document import Document
from adapters.mapping.problems import MappingProblem
from adapters.mapping.rules import (
    codes,
    fields,
    http,
    http_source,
    own,
    search,
    several,
    source,
    times,
)

Rule: TypeAlias = Callable[[Document], Iterator[MappingProblem]]

RULES: tuple[Rule, ...] = (
    source.profile_is_known,
    source.secrets_are_set,
    source.secrets_are_not_written,
    source.urls_have_a_scheme,
    source.rows_only_read,
    several.sections_name_their_source,
    several.sources_are_used,
    several.prefixes_tell_sources_apart,
    several.references_name_their_source,
    codes.tables_exist,
    codes.tables_are_used,
    codes.tables_are_given,
    codes.table_keys_can_match,
    codes.targets_are_allowed,
    codes.systems_are_addresses,
    codes.class_systems_are_classes,
    fields.required_slots_are_mapped,
    fields.nothing_is_listed_twice,
    fields.items_have_content,
    fields.item_rows_have_a_key,
    fields.visit_number_has_a_system,
    fields.functional_unit_has_an_extension,
    times.zones_are_known,
    times.at_is_a_time_of_day,
    times.formats_name_a_day,
    times.formats_name_a_time,
    times.letters_name_no_zone,
    search.parameters_are_known,
    search.sorts_are_known,
    search.searched_slots_have_columns,
    search.searched_columns_are_single,
    search.searched_columns_are_whole,
    search.searched_texts_sort,
    own.classes_stand_alone,
    own.searched_unit_has_an_extension,
    *http_source.RULES,
    *http.RULES,
)
