"""The conformance checklist and the decisions: each statement is shown, or departed from."""

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

STU3 = Path(__file__).parents[1] / "stu3"
STATEMENTS = json.loads((STU3 / "conformance-checklist.json").read_text("utf-8"))[
    "items"
]

SHOWN = """
authorization:a_bad_token_is_401
  SEC-02
authorization:a_client_that_may_not_read_learns_nothing
  SEC-04
authorization:a_missing_scope_is_named
  SEC-03
authorization:without_a_token_401_requests_one
  SEC-01
capability:the_statement_describes_pages_sorts_and_parameters
  CAP-05 CAP-06
capability:the_statement_is_that_of_a_read_only_stu3_service
  CAP-01 CAP-02 CAP-03 CAP-04 CAP-07 CAP-09
dates:dates_follow_the_truth_table
  DATE-01 DATE-05 DATE-09 DATE-10 DATE-15 DATE-17
dates:values_are_instants_in_the_deployments_zone_or_with_an_offset
  DATE-13
errors:a_body_may_be_64_kib_long
  HTTP-07
errors:an_error_has_its_status_code_and_text
  HTTP-08
errors:an_unexpected_error_is_500_and_reveals_nothing
  OO-05
errors:every_error_is_an_outcome_with_the_code_of_its_status
  READ-04 READ-06 READ-08 READ-09 OO-01 OO-02 OO-03 OO-04 OO-06
errors:nothing_is_created_updated_or_deleted
  HTTP-06
presentation:a_read_returns_the_resource_of_its_address
  READ-01 READ-13
presentation:if_modified_since_and_if_unmodified_since
  READ-11
presentation:if_none_match
  READ-10
presentation:letters_are_utf_8_and_length_is_in_bytes
  HTTP-09
presentation:responses_are_fhir_json_to_all_who_accept_it
  HTTP-01 HTTP-02 HTTP-03 HTTP-04 CAP-08
presentation:there_is_no_version_id
  READ-03 READ-12
presentation:what_is_no_id_is_not_found
  READ-07
requests:a_search_needs_no_parameter
  SRCH-01 SRCH-02 SRCH-16 SRCH-17
requests:a_token_in_query_or_form_is_refused_and_never_echoed
  SRCH-23
requests:an_unknown_parameter_is_400_and_lists_what_is_offered
  SRCH-10 SRCH-22 REF-04
requests:an_unsupported_modifier_is_400_whatever_prefer_says
  SRCH-11
requests:another_content_type_is_415_and_no_result
  SRCH-03
requests:comma_is_or_and_repetition_is_and
  SRCH-14 SRCH-15 DATE-07 DATE-08 TOK-03
requests:escapes_are_read_after_the_form
  TOK-04
requests:get_and_post_mean_the_same
  SRCH-04
requests:no_match_is_an_empty_searchset
  SRCH-06 SRCH-07
requests:parameters_in_the_query_of_a_post_count_too
  SRCH-05
requests:presentation_parameters_are_understood_and_filter_nothing
  HTTP-05
resources:a_result_holds_what_the_spec_lists_and_its_total_counts_matches_alone
  BUN-01 BUN-02 BUN-03 BUN-04 BUN-05 BUN-06 BUN-07 BUN-08 ENC-09 ENC-10
resources:every_row_is_found_as_it_is_read_or_reported
  ENC-12
resources:stays_have_every_state_their_number_and_their_times
  REF-05 ENC-01 ENC-02 ENC-03 ENC-05 ENC-06 ENC-07 ENC-08 ENC-11
rows:removed_is_gone_and_absent_from_searches
  READ-05
search_sessions:a_link_requires_the_token_of_its_client
  PAGE-02 PAGE-05
search_sessions:a_page_that_is_no_longer_stored_is_410
  PAGE-06
search_sessions:links_name_their_page_and_the_number_they_lead_to
  PAGE-03
search_sessions:links_start_with_the_configured_base_whatever_the_host
  BUN-09
search_sessions:pages_at_their_edges
  PAGE-08
search_sessions:pages_return_every_stay_once_forwards_and_backwards
  PAGE-01 PAGE-04
search_sessions:what_was_tampered_with_is_one_and_the_same_404
  PAGE-07
search_values:a_bad_value_names_parameter_part_and_allowed_forms
  SRCH-12 DATE-11 DATE-12
search_values:a_patient_by_id_reference_and_address
  REF-01 REF-02
search_values:an_unescaped_plus_gets_a_hint
  DATE-14
search_values:another_servers_patient_matches_nothing
  REF-03
search_values:count_of_zero_negative_or_no_number
  SRCH-19
search_values:tokens
  TOK-01 TOK-02 TOK-05
searching:stays_are_sorted_by_the_key_then_by_id
  SRCH-20 SRCH-21
"""
"""Tests, named by module and function without their `test_`, and the statements they show."""

DEPARTURES: Mapping[str, tuple[int, str]] = {
    "READ-02": (19, "presentation:last_modified_only_where_the_mapping_vouches_for_it"),
    "SRCH-08": (3, "search_values:a_bad_value_names_parameter_part_and_allowed_forms"),
    "SRCH-09": (2, "requests:an_unknown_parameter_is_400_and_lists_what_is_offered"),
    "SRCH-13": (3, "search_values:an_empty_value_is_a_bad_value"),
    "SRCH-18": (3, "search_values:count_above_100_is_a_bad_value_and_lenient_caps_it"),
    "DATE-02": (5, "dates:dates_follow_the_truth_table"),
    "DATE-03": (5, "dates:dates_follow_the_truth_table"),
    "DATE-04": (5, "dates:dates_follow_the_truth_table"),
    "DATE-06": (5, "dates:dates_follow_the_truth_table"),
    "DATE-16": (5, "dates:dates_follow_the_truth_table"),
    "ENC-04": (18, "rows:codes_have_the_system_of_the_deployment"),
}
"""Statements that a decision departs from, and a test of what happens instead."""


def _tests() -> Mapping[str, str]:
    """Return the docstrings of all tests beside this one."""
    docstrings = {}
    for file in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"{file.stem}:{node.name}".replace("test_", "")
                docstrings[name] = ast.get_docstring(node) or ""
    return docstrings


def test_every_statement_is_shown_or_departed_from() -> None:
    docstrings, found = _tests(), Counter(DEPARTURES.keys())
    for line in SHOWN.strip().splitlines():
        if line.startswith(" "):
            found.update(line.split())
        else:
            assert line in docstrings
    assert found == Counter(each["id"] for each in STATEMENTS)
    for decision, test in DEPARTURES.values():
        assert f"ecision {decision}" in docstrings[test], test


def test_every_decision_is_tested() -> None:
    numbers = r"[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)"
    named = re.findall(numbers, " ".join(_tests().values()))
    assert {int(n) for each in named for n in re.findall(r"\d+", each)} >= {
        *range(1, 27)
    }
