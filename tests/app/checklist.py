"""Where each statement of the conformance checklist is shown, or which decision departs.

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
_TRUTH = ("decisions_dates:05_dates_follow_the_truth_table",)

DEPARTURES = (
    Departure(
        "READ-02",
        19,
        "Last-Modified is there only where the mapping vouches for the time of the change",
        ("decisions_shown:19_last_modified_only_where_the_mapping_vouches_for_it",),
    ),
    Departure(
        "SRCH-08",
        3,
        "the spec closes the list of classes, so that another code is a bad value: 412",
        ("decisions_values:03_a_code_outside_its_list_is_code_invalid",),
    ),
    Departure(
        "SRCH-09",
        2,
        "an unknown parameter is refused, and ignored only with Prefer: handling=lenient",
        (
            "decisions_closed:02_an_unknown_parameter_is_400_and_told_what_is_offered",
            "decisions_closed:02_lenient_ignores_it_and_one_outcome_entry_says_so",
        ),
    ),
    Departure(
        "SRCH-13",
        3,
        "an empty value is a bad value: a filter that is lost would widen the result",
        ("decisions_values:03_an_empty_value_is_a_bad_value",),
    ),
    Departure(
        "SRCH-18",
        3,
        "a _count above 100 is a bad value; Prefer: handling=lenient lowers it",
        (
            "decisions_values:03_count_above_100",
            "decisions_values:03_lenient_caps_a_count_at_100",
        ),
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
        (
            "decisions_rows:18_all_codes_are_in_act_code_by_default",
            "decisions_rows:18_rec_and_unk_may_have_another",
        ),
    ),
)

SHOWN = """
READ-01  conformance_http:a_read_answers_the_resource_of_its_address
READ-03  decisions_shown:19_there_is_no_version_id
         decisions_shown:19_the_tag_of_an_entity_is_that_of_its_body
READ-04  decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
         decisions_tokens:06_an_id_the_column_cannot_hold_is_not_found
READ-05  decisions_rows:17_removed_is_gone_and_absent_from_searches
READ-06  decisions_errors:20_no_issue_is_called_deleted
READ-07  conformance_http:what_is_no_id_is_not_found
READ-08  decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
READ-09  decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
READ-10  decisions_shown:19_if_none_match
READ-11  decisions_shown:19_if_modified_since
READ-12  conformance_http:history_is_explained
READ-13  conformance_http:head_has_no_body
         decisions_shown:19_head_answers_as_get_does_and_shows_nothing
SRCH-01  conformance_http:a_search_needs_no_parameter
SRCH-02  conformance_http:a_search_needs_no_parameter
SRCH-03  decisions_forms:01_another_content_type_is_415_and_no_result
SRCH-04  decisions_forms:01_both_forms_mean_the_same
         search_parameters:get_and_post_find_the_same
SRCH-05  decisions_forms:01_parameters_in_the_query_of_a_post_count_too
SRCH-06  conformance_http:no_match_is_an_empty_searchset
SRCH-07  conformance_http:no_match_is_an_empty_searchset
SRCH-10  conformance_http:strict_handling_names_the_parameter
SRCH-11  decisions_closed:02_an_unsupported_modifier_is_400_whatever_prefer_says
SRCH-12  decisions_values:03_a_bad_value_names_parameter_part_and_allowed_forms
         decisions_closed:02_an_unsupported_modifier_is_400_whatever_prefer_says
SRCH-14  decisions_forms:04_comma_is_or_and_repetition_is_and
SRCH-15  decisions_forms:04_comma_is_or_and_repetition_is_and
SRCH-16  conformance_http:count_is_the_size_of_a_page_alone
SRCH-17  conformance_http:count_is_the_size_of_a_page_alone
SRCH-19  decisions_values:03_count_of_zero_negative_or_no_number
SRCH-20  decisions_order:08_stays_are_sorted_by_their_start
SRCH-21  conformance_http:the_order_is_the_same_twice
         decisions_order:08_the_id_is_the_last_key_in_the_direction_of_the_sort
SRCH-22  decisions_closed:02_an_unknown_parameter_is_400_and_told_what_is_offered
SRCH-23  decisions_closed:02_a_token_in_a_form_is_refused_and_never_echoed
DATE-01  decisions_dates:05_a_value_without_prefix_is_eq
DATE-05  decisions_dates:05_dates_follow_the_truth_table
DATE-07  decisions_forms:04_comma_is_or_and_repetition_is_and
DATE-08  decisions_forms:04_comma_is_or_and_repetition_is_and
DATE-09  decisions_dates:05_dates_follow_the_truth_table
         decisions_dates:05_a_value_without_offset_is_in_the_deployments_zone
DATE-10  decisions_dates:05_dates_follow_the_truth_table
DATE-11  decisions_values:03_a_bad_value_names_parameter_part_and_allowed_forms
DATE-12  decisions_values:03_a_bad_value_names_parameter_part_and_allowed_forms
DATE-13  decisions_dates:05_a_value_with_an_offset_compares_instants
DATE-14  decisions_values:03_an_unescaped_plus_is_told
DATE-15  decisions_dates:05_sa_eb_and_ap_are_bad_values
DATE-17  decisions_dates:05_a_stay_without_a_start_matches_no_date_filter
TOK-01   decisions_tokens:06_tokens
TOK-02   decisions_tokens:06_tokens
TOK-03   decisions_forms:04_comma_is_or_and_repetition_is_and
TOK-04   decisions_forms:04_escapes_are_read_after_the_form
TOK-05   decisions_tokens:06_tokens
REF-01   decisions_tokens:07_a_patient_by_id_reference_and_address
REF-02   decisions_tokens:07_a_patient_by_id_reference_and_address
REF-03   decisions_tokens:07_another_servers_patient_matches_nothing
REF-04   decisions_closed:02_an_unknown_parameter_is_400_and_told_what_is_offered
REF-05   conformance_resources:references_have_no_type
BUN-01   conformance_resources:bundles_have_type_total_and_links
BUN-02   conformance_resources:entries_have_absolute_addresses_that_occur_once
BUN-03   conformance_resources:entries_have_absolute_addresses_that_occur_once
BUN-04   conformance_resources:entries_have_absolute_addresses_that_occur_once
BUN-05   conformance_resources:a_result_tells_no_error_and_its_total_counts_matches_alone
BUN-06   conformance_resources:a_result_tells_no_error_and_its_total_counts_matches_alone
BUN-07   conformance_resources:bundles_have_type_total_and_links
BUN-08   conformance_resources:bundles_have_type_total_and_links
BUN-09   decisions_pages:10_links_start_with_the_configured_base_whatever_the_host
PAGE-01  decisions_pages:12_a_walk_returns_every_stay_once_forwards_and_backwards
PAGE-02  conformance_http:a_link_is_a_plain_get_with_a_token
PAGE-03  decisions_pages:10_relations_are_there_only_when_their_page_is
PAGE-04  decisions_pages:12_a_walk_returns_every_stay_once_forwards_and_backwards
         decisions_pages:10_previous_leads_to_a_new_page_that_ends_where_it_did
PAGE-05  conformance_http:a_link_is_a_plain_get_with_a_token
PAGE-06  decisions_cursors:14_a_page_that_is_no_longer_kept_is_410
         decisions_cursors:14_what_was_tampered_with_is_one_and_the_same_404
PAGE-07  decisions_cursors:14_what_was_tampered_with_is_one_and_the_same_404
         decisions_cursors:14_wrong_length_or_alphabet_or_both_cursors_is_412
PAGE-08  conformance_http:pages_at_their_edges
OO-01    decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
         decisions_errors:20_nothing_is_created_updated_or_deleted
OO-02    decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
         outcomes:every_issue_code_is_an_stu3_one
OO-03    decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
OO-04    decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
         decisions_headers:21_without_a_token_401_asks_for_one
         decisions_errors:20_insufficient_scope_is_processing
         decisions_identity:22_issuer_audience_expiry_and_key_are_checked
         outcomes:a_bare_status_has_the_issue_code_of_the_list
OO-05    decisions_errors:20_a_fault_that_nobody_foresaw_is_500_and_tells_nothing
         decisions_outages:23_a_server_that_is_not_there_is_503_and_not_named
         decisions_outages:23_an_answer_that_makes_no_sense_is_502
OO-06    decisions_errors:20_every_error_is_an_outcome_with_the_code_of_its_status
HTTP-01  conformance_http:answers_are_fhir_json_in_utf_8
HTTP-02  conformance_http:json_is_given_to_all_who_take_it
HTTP-03  conformance_http:what_is_not_served_is_406
HTTP-04  conformance_http:the_format_wins_over_accept
HTTP-05  decisions_closed:02_how_to_show_a_result_is_understood_and_no_filter
HTTP-06  decisions_errors:20_nothing_is_created_updated_or_deleted
HTTP-07  decisions_errors:20_a_body_may_be_64_kib_long
HTTP-08  outcomes:the_headers_that_a_status_asks_for
         decisions_outages:23_an_outage_is_503_never_404_and_never_empty
HTTP-09  conformance_http:letters_are_utf_8_and_length_is_in_bytes
CAP-01   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
CAP-02   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
CAP-03   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
CAP-04   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
CAP-05   conformance_http:parameters_have_the_type_and_the_address_of_their_definition
CAP-06   conformance_http:parameters_have_the_type_and_the_address_of_their_definition
CAP-07   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
CAP-08   conformance_http:what_is_not_served_is_406
CAP-09   conformance_http:the_statement_is_that_of_a_read_only_stu3_service
ENC-01   conformance_resources:stays_have_one_of_three_states
ENC-02   conformance_resources:a_class_is_one_coding
ENC-03   conformance_resources:a_class_is_one_coding
         decisions_rows:18_a_deployment_has_one_system
ENC-05   conformance_resources:visit_numbers_are_official_and_their_systems_oids
ENC-06   conformance_resources:visit_numbers_are_official_and_their_systems_oids
ENC-07   conformance_resources:times_have_seconds_and_an_offset_and_are_in_order
ENC-08   conformance_resources:an_open_stay_has_no_end
ENC-09   conformance_resources:nothing_is_null_or_empty_and_nothing_is_of_r4
ENC-10   conformance_resources:nothing_is_null_or_empty_and_nothing_is_of_r4
ENC-11   conformance_resources:extensions_have_an_address_and_one_value
ENC-12   conformance_resources:a_stay_is_the_same_read_and_found
SEC-01   decisions_headers:21_without_a_token_401_asks_for_one
SEC-02   decisions_headers:21_a_bad_token_is_told_so
         decisions_identity:22_issuer_audience_expiry_and_key_are_checked
SEC-03   decisions_headers:21_a_lack_of_scope_names_the_scope
         decisions_errors:20_insufficient_scope_is_processing
SEC-04   conformance_http:a_client_that_may_not_read_learns_nothing
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
