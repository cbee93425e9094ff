"""The drill as a test (`make drill`), and that its judgement can fail."""

import pytest

from tests.deploy.proxies import NGINX
from tests.drill.__main__ import PARTS, main
from tests.drill.ledger import LOST, Ledger, judged

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")


@pytest.mark.system
@needs_nginx
def test_a_planned_stop_loses_no_response() -> None:
    assert main(["stops", "--requests", "5000"]) == 0


@pytest.mark.extended
@needs_nginx
@pytest.mark.parametrize("part", [name for name in PARTS if name != "stops"])
def test_a_deployment_is_broken_part_by_part(part: str) -> None:
    assert main([part, "--requests", "20000"]) == 0


def test_a_walk_is_judged() -> None:
    expected = frozenset({"1", "2", "3"})
    assert judged(["1", "2", "3"], expected) == (0, 0, 0)
    assert judged(["1", "2", "9"], expected) == (1, 0, 1)
    assert judged(["1", "2", "2", "3"], expected) == (0, 1, 0)


def test_what_was_not_promised_is_a_fault() -> None:
    ledger = Ledger()
    ledger.begin("quiet")
    ledger.answered(200)
    ledger.set_out()
    ledger.arrived(["1"], frozenset({"1"}))
    assert not list(ledger.faults())
    ledger.begin("an instance is killed", frozenset({LOST}))
    ledger.answered(LOST)
    assert not list(ledger.faults())
    for _ in range(100):
        ledger.answered(200)
    ledger.answered(503)
    assert not list(ledger.faults()), "now and then, on a busy machine"
    ledger.answered(503)
    ledger.answered(503)
    assert list(ledger.faults()) == ["an instance is killed: 503 is not promised"]
    ledger.set_out()
    ledger.arrived(["1", "1"], frozenset({"1"}))
    ledger.set_out()
    ledger.gave_up("no answer")
    assert len(list(ledger.faults())) == 3
    assert "1 × lost, 3 × 503" in ledger.table()


def test_where_nothing_may_fail_one_503_is_a_fault() -> None:
    ledger = Ledger()
    ledger.begin("an instance is stopped", busy_share=0)
    for _ in range(1000):
        ledger.answered(200, 0.1)
    ledger.begin("another is stopped", busy_share=0)
    ledger.answered(200, 0.3)
    ledger.begin("an instance is stopped", busy_share=0)
    assert not [each for each in ledger.faults() if "promised" in each]
    ledger.answered(503, 0.2)
    assert "an instance is stopped: 503 is not promised" in ledger.faults()
    assert [met.answers.total() for met in ledger.events] == [1001, 1]
    assert [met.slowest for met in ledger.events] == [0.2, 0.3]
