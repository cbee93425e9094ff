"""Which tests `make test` leaves out: one table of those that are `system`, one of `extended`.

An entry is a folder, a file or a test below tests/. Whatever stands in neither runs within
the test process, beside an embedded Redis and an embedded PostgreSQL.
"""

import random
from collections.abc import Iterable, Iterator

import pytest

SYSTEM = (
    # Another process serves, is asked or is ended.
    "app/cli/test_audit_command.py::test_workers_of_a_service_append_to_one_file",
    "app/test_audit.py::test_a_process_that_stands_still_holds_nobody_up",
    "app/test_audit.py::test_logrotate_may_rename_the_file_at_any_time",
    "app/test_audit.py::test_of_a_line_that_has_no_room_nothing_stays",
    "app/test_cli.py::test_ctrl_c_stops_a_command_without_a_traceback",
    "app/test_cli.py::test_serve_becomes_the_service",
    "app/test_cli.py::test_serve_names_every_fault_of_the_mapping_and_its_line",
    "app/test_cli.py::test_serve_names_every_setting_that_is_missing",
    "app/test_cli.py::test_serve_refuses_a_database_without_a_column_of_the_mapping",
    "app/test_cli.py::test_serve_refuses_an_account_that_may_write",
    "app/test_cli.py::test_serve_refuses_identifiers_of_examples_off_loopback",
    "app/test_locales.py",
    "app/test_lifetimes.py",
    "app/test_logging.py::test_a_whole_process_writes_json_to_stderr",
    "app/test_redis_client.py::test_a_certificate_that_nobody_vouches_for_is_refused",
    "app/test_redis_client.py::test_a_walk_goes_on_after_a_failover",
    "app/test_redis_client.py::test_pages_are_kept_over_tls",
    "app/test_redis_client.py::test_sentinels_may_have_another_password_or_none",
    "app/test_cli.py::test_serve_refuses_a_source_without_a_usable_address",
    "app/test_config.py::test_files_that_the_account_may_not_reach_are_told_by_name",
    "attacks/test_neighbours.py",
    "attacks/test_raw_sockets.py",
    "demo/test_demo_canaries.py",
    "demo/test_http.py::test_it_runs_as_a_process",
    "demo/test_http.py::test_without_its_key_it_names_the_variable",
    "demo/test_run.py",
    "deploy/test_chart.py",
    "deploy/test_compose.py::test_docker_compose_reads_it",
    "deploy/test_compose.py::test_it_fits_the_schema_of_compose_files",
    "deploy/test_compose.py::test_monitoring_is_reached_through_its_proxy",
    "deploy/test_compose.py::test_redis_has_a_password_drops_no_page_and_survives_a_restart",
    "deploy/test_compose.py::test_the_script_writes_the_digest_of_every_image",
    "deploy/test_kubernetes.py::test_what_is_applied_is_whole",
    "deploy/test_monitoring.py::test_prometheus_takes_alerts_and_configuration",
    "deploy/test_proxy.py",
    "deploy/test_deploy_page.py",
    "deploy/test_systemd.py",
    "drill/test_drill.py::test_a_planned_stop_loses_no_response",
    "server/test_probes.py",
    "server/test_reload.py",
    "server/test_rotation.py",
    "server/test_start.py",
    "test_release.py",
    "clients/test_command.py::test_a_terminal_shows_progress_and_problems",
    "clients/test_command.py::test_ctrl_c_leaves_what_the_next_run_continues",
    "clients/test_typescript_client.py",
    "docs/test_guide.py",
    "docs/test_security_pages.py::test_the_commands_find_who_saw_whom",
    "docs/test_snippets.py",
    "docs/test_operators_page.py::test_generated_parts_are_up_to_date",
    # They look at the clock.
    "adapters/sql/test_frozen_databases.py",
)

FIXTURES = frozenset(
    {
        *("browser", "demo", "demo_api", "hospital_server"),
        *("kestrel", "mariadb_server", "mysql_server", "pgbouncer"),
    }
)
"""Who asks for one of these has a process started, and is `system`."""

SERVERS = ("mariadb", "mysql")
PARAMETERS = frozenset(
    {("source", "http"), ("source", "pgbouncer"), ("deployment", "limited")}
)
"""So is a test with one of these parameters, or with one that names one of the servers.

A source over HTTP is a process; a limit counts within one minute of the clock.
"""

EXTENDED = (
    # Products of parameters, and made-up cases by the hundred.
    "adapters/sql/test_time_columns.py::test_dates",
    "adapters/sql/test_comparisons.py",
    "adapters/sql/test_keyset.py",
    # They build and start servers of others.
    "adapters/http/test_json_server.py",
    "fhir_r4/test_medplum.py",
    "fhir_r4/test_fhir_r4.py::test_a_real_server_is_equal",
    "fhir_r4/test_fhir_r4.py::test_check_live_has_no_error_on_a_real_server",
    "app/test_openapi.py::test_every_answer_is_one_that_is_described",
    "test_vendor.py::test_a_build_writes_the_same_files",
    "browser/test_explorer_journeys.py",
    "browser/test_workbench_journeys.py",
    "attacks/test_made_up_links.py",
    "attacks/test_made_up_searches.py",
    "attacks/test_made_up_tokens.py",
    "gnuhealth/test_gnuhealth_served.py",
    # They break a whole deployment, build an image, or measure.
    "bench/test_compared.py",
    "clients/test_frames.py",
    "clients/test_generated.py",
    "clients/test_libraries.py",
    "deploy/test_image.py",
    "drill/test_drill.py::test_a_deployment_is_broken_part_by_part",
)

SHORT = (
    "browser/test_explorer_journeys.py::test_every_page_can_be_used[light]",
    "browser/test_explorer_journeys.py::test_every_page_can_be_used[no-script]",
    "browser/test_explorer_journeys.py::test_pages_go_on_and_back",
    "browser/test_explorer_journeys.py::test_everything_works_with_the_keyboard_alone",
    "browser/test_explorer_journeys.py::test_a_slow_search_shows_progress_and_is_cancelled",
    "browser/test_workbench_journeys.py::test_a_row_is_shown_beside_its_rule_and_its_resource[light]",
    "browser/test_workbench_journeys.py::test_a_mapping_is_written_from_nothing_to_a_served_stay",
)
"""Of the extended tests, those that are `system` too: a journey of each kind."""

LONGEST = ("docs/test_guide.py", "demo/test_run.py")
"""A run begins with these files."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take `--shuffle`."""
    parser.addoption(
        "--shuffle", metavar="SEED", help="run files, and the tests of each, shuffled"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark each test, before pytest chooses by marks and brings fixtures together."""
    for item in items:
        name = _name(item)
        is_extended = _is_of(name, EXTENDED)
        if is_extended:
            item.add_marker("extended")
        starts = not is_extended and _starts_a_process(item)
        if starts or _is_of(name, (*SYSTEM, *SHORT)):
            item.add_marker("system")
    seed = config.getoption("shuffle")
    if seed is not None:
        _shuffle(items, random.Random(seed))
    yield
    if seed is None:
        # A file that begins last is waited for alone.
        items.sort(key=lambda item: not _is_of(_name(item), LONGEST))


def _name(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


def _is_of(name: str, table: Iterable[str]) -> bool:
    return any(
        name == entry or name.startswith((f"{entry}/", f"{entry}::", f"{entry}["))
        for entry in table
    )


def _starts_a_process(item: pytest.Item) -> bool:
    if not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    callspec = getattr(item, "callspec", None)
    given = callspec.params if callspec else {}
    return any(
        (name, value) in PARAMETERS
        or any(each in SERVERS for each in (value, *_first(value)))
        for name, value in given.items()
        if isinstance(value, str | tuple)
    )


def _first(value: object) -> tuple[object, ...]:
    return value[:1] if isinstance(value, tuple) else ()


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    files = sorted({item.path for item in items})
    chance.shuffle(files)
    place = {file: at for at, file in enumerate(files)}
    chance.shuffle(items)
    items.sort(key=lambda item: place[item.path])
