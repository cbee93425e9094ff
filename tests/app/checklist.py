"""Which tests show each statement of the conformance checklist, or which decision departs.

A test is named by its module and its function, both without their `test_`.
"""

from typing import NamedTuple


class Departure(NamedTuple):
    """A statement that a decision departs from; `tests` are of what happens instead."""

    id: str
    decision: int
    why: str
    tests: tuple[str, ...]


_START = "`date` filters on the start of a stay; `date: period` reads the whole of it"
_TRUTH = ("dates:dates_follow_the_truth_table",)

DEPARTURES = (
    Departure(
        "READ-02",
        19,
        "Last-Modified is there only where the mapping vouches for the time of the change",
        ("presentation:last_modified_only_where_the_mapping_vouches_for_it",),
    ),
    Departure(
        "SRCH-08",
        3,
        "the spec closes the list of classes, so that another code is a bad value: 412",
        ("search_values:a_bad_value_names_parameter_part_and_allowed_forms",),
    ),
    Departure(
        "SRCH-09",
        2,
        "an unknown parameter is refused, and ignored only with Prefer: handling=lenient",
        (
            "requests:an_unknown_parameter_is_400_and_lists_what_is_offered",
            "requests:lenient_ignores_it_and_one_outcome_entry_says_so",
        ),
    ),
    Departure(
        "SRCH-13",
        3,
        "an empty value is a bad value: a filter that is lost would widen the result",
        ("search_values:an_empty_value_is_a_bad_value",),
    ),
    Departure(
        "SRCH-18",
        3,
        "a _count above 100 is a bad value; Prefer: handling=lenient lowers it",
        ("search_values:count_above_100_is_a_bad_value_and_lenient_caps_it",),
    ),
    Departure("DATE-02", 5, _START, _TRUTH),
    Departure("DATE-03", 5, _START, _TRUTH),
    Departure("DATE-04", 5, _START, _TRUTH),
    Departure(
        "DATE-06",
        5,
        "a stay starts at an instant (spec 2.1), which is on one side of 10:00 alone",
        _TRUTH,
    ),
    Departure("DATE-16", 5, _START, _TRUTH),
    Departure(
        "ENC-04",
        18,
        "one system on all six codes unless the mapping names another for REC or UNK",
        ("rows:codes_have_the_system_of_the_deployment",),
    ),
)

SHOWN = """
READ-01  presentation:a_read_returns_the_resource_of_its_address
READ-03  presentation:there_is_no_version_id
         presentation:an_etag_is_a_digest_of_the_body
READ-04  errors:every_error_is_an_outcome_with_the_code_of_its_status
         search_values:an_id_the_column_cannot_hold_is_not_found
READ-05  rows:removed_is_gone_and_absent_from_searches
READ-06  errors:every_error_is_an_outcome_with_the_code_of_its_status
READ-07  presentation:what_is_no_id_is_not_found
READ-08  errors:every_error_is_an_outcome_with_the_code_of_its_status
READ-09  errors:every_error_is_an_outcome_with_the_code_of_its_status
READ-10  presentation:if_none_match
READ-11  presentation:if_modified_since_and_if_unmodified_since
READ-12  presentation:there_is_no_version_id
READ-13  presentation:a_read_returns_the_resource_of_its_address
SRCH-01  requests:a_search_needs_no_parameter
SRCH-02  requests:a_search_needs_no_parameter
SRCH-03  requests:another_content_type_is_415_and_no_result
SRCH-04  requests:get_and_post_mean_the_same
         searching:parameters_find_what_the_model_finds
SRCH-05  requests:parameters_in_the_query_of_a_post_count_too
SRCH-06  requests:no_match_is_an_empty_searchset
SRCH-07  requests:no_match_is_an_empty_searchset
SRCH-10  requests:an_unknown_parameter_is_400_and_lists_what_is_offered
SRCH-11  requests:an_unsupported_modifier_is_400_whatever_prefer_says
SRCH-12  search_values:a_bad_value_names_parameter_part_and_allowed_forms
         requests:an_unsupported_modifier_is_400_whatever_prefer_says
SRCH-14  requests:comma_is_or_and_repetition_is_and
SRCH-15  requests:comma_is_or_and_repetition_is_and
SRCH-16  requests:a_search_needs_no_parameter
SRCH-17  requests:a_search_needs_no_parameter
SRCH-19  search_values:count_of_zero_negative_or_no_number
SRCH-20  searching:stays_are_sorted_by_the_key_then_by_id
SRCH-21  searching:stays_are_sorted_by_the_key_then_by_id
SRCH-22  requests:an_unknown_parameter_is_400_and_lists_what_is_offered
SRCH-23  requests:a_token_in_query_or_form_is_refused_and_never_echoed
DATE-01  dates:dates_follow_the_truth_table
DATE-05  dates:dates_follow_the_truth_table
DATE-07  requests:comma_is_or_and_repetition_is_and
DATE-08  requests:comma_is_or_and_repetition_is_and
DATE-09  dates:dates_follow_the_truth_table
         dates:values_are_instants_in_the_deployments_zone_or_with_an_offset
DATE-10  dates:dates_follow_the_truth_table
DATE-11  search_values:a_bad_value_names_parameter_part_and_allowed_forms
DATE-12  search_values:a_bad_value_names_parameter_part_and_allowed_forms
DATE-13  dates:values_are_instants_in_the_deployments_zone_or_with_an_offset
DATE-14  search_values:an_unescaped_plus_gets_a_hint
DATE-15  dates:dates_follow_the_truth_table
DATE-17  dates:dates_follow_the_truth_table
TOK-01   search_values:tokens
TOK-02   search_values:tokens
TOK-03   requests:comma_is_or_and_repetition_is_and
TOK-04   requests:escapes_are_read_after_the_form
TOK-05   search_values:tokens
REF-01   search_values:a_patient_by_id_reference_and_address
REF-02   search_values:a_patient_by_id_reference_and_address
REF-03   search_values:another_servers_patient_matches_nothing
REF-04   requests:an_unknown_parameter_is_400_and_lists_what_is_offered
REF-05   resources:references_have_no_type_and_extensions_one_value
BUN-01   resources:bundles_have_type_total_and_links
BUN-02   resources:entries_have_absolute_addresses_that_occur_once
BUN-03   resources:entries_have_absolute_addresses_that_occur_once
BUN-04   resources:entries_have_absolute_addresses_that_occur_once
BUN-05   resources:a_result_holds_no_error_and_its_total_counts_matches_alone
BUN-06   resources:a_result_holds_no_error_and_its_total_counts_matches_alone
BUN-07   resources:bundles_have_type_total_and_links
BUN-08   resources:bundles_have_type_total_and_links
BUN-09   search_sessions:links_start_with_the_configured_base_whatever_the_host
PAGE-01  search_sessions:pages_return_every_stay_once_forwards_and_backwards
PAGE-02  search_sessions:a_link_requires_the_token_of_its_client
PAGE-03  search_sessions:links_name_their_page_and_the_number_they_lead_to
PAGE-04  search_sessions:pages_return_every_stay_once_forwards_and_backwards
         search_sessions:previous_leads_to_a_new_page_that_ends_where_it_did
PAGE-05  search_sessions:a_link_requires_the_token_of_its_client
PAGE-06  search_sessions:a_page_that_is_no_longer_stored_is_410
         search_sessions:what_was_tampered_with_is_one_and_the_same_404
PAGE-07  search_sessions:what_was_tampered_with_is_one_and_the_same_404
         search_sessions:wrong_length_or_alphabet_or_both_cursors_is_412
PAGE-08  search_sessions:pages_at_their_edges
OO-01    errors:every_error_is_an_outcome_with_the_code_of_its_status
         errors:nothing_is_created_updated_or_deleted
OO-02    errors:every_error_is_an_outcome_with_the_code_of_its_status
         errors:a_bare_status_has_the_issue_code_of_the_list
OO-03    errors:every_error_is_an_outcome_with_the_code_of_its_status
OO-04    errors:every_error_is_an_outcome_with_the_code_of_its_status
         authorization:without_a_token_401_requests_one
         errors:insufficient_scope_is_processing
         authorization:a_bad_token_is_401
         errors:a_bare_status_has_the_issue_code_of_the_list
OO-05    errors:an_unexpected_error_is_500_and_reveals_nothing
         errors:an_outage_is_503_never_404_and_never_empty
         errors:an_answer_that_makes_no_sense_is_502
OO-06    errors:every_error_is_an_outcome_with_the_code_of_its_status
HTTP-01  presentation:responses_are_fhir_json_to_all_who_accept_it
HTTP-02  presentation:responses_are_fhir_json_to_all_who_accept_it
HTTP-03  presentation:responses_are_fhir_json_to_all_who_accept_it
HTTP-04  presentation:responses_are_fhir_json_to_all_who_accept_it
HTTP-05  requests:presentation_parameters_are_understood_and_filter_nothing
HTTP-06  errors:nothing_is_created_updated_or_deleted
HTTP-07  errors:a_body_may_be_64_kib_long
HTTP-08  errors:an_error_has_its_status_code_and_text
         errors:an_outage_is_503_never_404_and_never_empty
HTTP-09  presentation:letters_are_utf_8_and_length_is_in_bytes
CAP-01   capability:the_statement_is_that_of_a_read_only_stu3_service
CAP-02   capability:the_statement_is_that_of_a_read_only_stu3_service
CAP-03   capability:the_statement_is_that_of_a_read_only_stu3_service
CAP-04   capability:the_statement_is_that_of_a_read_only_stu3_service
CAP-05   capability:the_statement_describes_pages_sorts_and_parameters
CAP-06   capability:the_statement_describes_pages_sorts_and_parameters
CAP-07   capability:the_statement_is_that_of_a_read_only_stu3_service
CAP-08   presentation:responses_are_fhir_json_to_all_who_accept_it
CAP-09   capability:the_statement_is_that_of_a_read_only_stu3_service
ENC-01   resources:stays_have_one_of_three_states_and_one_class
ENC-02   resources:stays_have_one_of_three_states_and_one_class
ENC-03   resources:stays_have_one_of_three_states_and_one_class
         rows:codes_have_the_system_of_the_deployment
ENC-05   resources:visit_numbers_are_official_and_their_systems_oids
ENC-06   resources:visit_numbers_are_official_and_their_systems_oids
ENC-07   resources:times_have_seconds_and_an_offset_and_are_in_order
ENC-08   resources:times_have_seconds_and_an_offset_and_are_in_order
ENC-09   resources:nothing_is_null_or_empty_and_nothing_is_of_r4
ENC-10   resources:nothing_is_null_or_empty_and_nothing_is_of_r4
ENC-11   resources:references_have_no_type_and_extensions_one_value
ENC-12   resources:every_row_is_found_as_it_is_read_or_reported
SEC-01   authorization:without_a_token_401_requests_one
SEC-02   authorization:a_bad_token_is_401
         auth:a_bad_token_is_401_invalid_token
         auth:an_expired_token_is_told_apart
SEC-03   authorization:a_missing_scope_is_named
         errors:insufficient_scope_is_processing
SEC-04   authorization:a_client_that_may_not_read_learns_nothing
"""
"""An id and its tests, one a line."""


def shown() -> list[tuple[str, list[str]]]:
    """Return the lines of `SHOWN`: ids in their order, each with its tests."""
    found: list[tuple[str, list[str]]] = []
    for line in SHOWN.strip().splitlines():
        id, _, test = line.partition(" ")
        if id:
            found.append((id, []))
        found[-1][1].append(test.strip())
    return found
