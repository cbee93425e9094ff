"""Made-up links: the right page where the link is one, else nobody's."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.answers import parameters
from tests.attacks.made_up import SQL, TEXTS, tried
from tests.serving import Served, ids, link, relations

pytestmark = pytest.mark.extended

NAMES = ("_id", "_index", "_searchAfter", "_searchBefore")
OTHERS = (*NAMES, "_count", "patient", "_format", "_id:exact", "")


class Known:
    """The links of walks of two clients, and the pages that they lead to."""

    def __init__(self, *clients: Served) -> None:
        self.right: list[dict[frozenset[tuple[str, str]], list[str]]] = []
        self.values: dict[str, list[str]] = {name: ["0", "1", "2"] for name in NAMES}
        for client in clients:
            self.right.append({})
            for sort in ("date", "-date"):
                self._walk(client, sort)

    def _walk(self, client: Served, sort: str) -> None:
        page = client.search("Encounter", {"_count": "20", "_sort": sort})
        while True:
            for relation in ("self", "next", "previous"):
                if relation in relations(page):
                    self._take(client, link(page, relation))
            if "next" not in relations(page):
                return
            page = client.follow(page, "next")

    def _take(self, client: Served, url: str) -> None:
        carried = parameters(url)
        for name, value in carried.items():
            self.values[name].append(value)
        found = ids(client.get(url).get_json(force=True))
        self.right[-1][frozenset(carried.items())] = found


@pytest.fixture
def clients(served: Served) -> tuple[Served, Served]:
    return served.as_client("client-1"), served.as_client("client-2")


def test_only_a_link_leads_to_a_page_and_only_its_client(
    clients: tuple[Served, Served],
) -> None:
    known = Known(*clients)

    @tried(60)
    @given(st.sampled_from([0, 1]), made_up(known))
    def follow(number: int, pairs: list[tuple[str, str]]) -> None:
        answer = clients[number].get(f"Bundle?{urlencode(pairs)}")
        right = known.right[number].get(frozenset(pairs))
        if right is not None and len(pairs) == len(dict(pairs)):
            assert answer.status_code == 200
        if answer.status_code == 200:
            asked = frozenset(pair for pair in pairs if pair[0] in NAMES)
            assert known.right[number][asked] == ids(answer.get_json(force=True))
        else:
            odd = {406} if "_format" in dict(pairs) else set()
            assert answer.status_code in {400, 404, 410, 412} | odd, answer.text

    follow()


def made_up(known: Known) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Return parameters of links: whole ones, bent ones, and parts of several."""
    whole = st.sampled_from(
        sorted(sorted(each) for right in known.right for each in right)
    )
    loose = st.sampled_from(NAMES).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.sampled_from(sorted(set(known.values[name]))) | bent(known),
        )
    )
    odd = st.tuples(st.sampled_from(OTHERS) | TEXTS, st.sampled_from(SQL) | TEXTS)
    return st.tuples(
        st.just([]) | whole, st.lists(loose, max_size=3) | st.lists(odd, max_size=2)
    ).map(lambda both: both[0] + both[1]) | st.tuples(
        whole, st.integers(0, 2), loose
    ).map(lambda made: [*made[0][: made[1]], made[2], *made[0][made[1] + 1 :]])


@st.composite
def bent(draw: st.DrawFn, known: Known) -> str:
    """Return an id or a cursor of a link, a sign of it taken away or changed."""
    text: str = draw(st.sampled_from(sorted(set(known.values["_id"]))))
    place = draw(st.integers(0, len(text)))
    return (
        text[:place]
        + draw(st.sampled_from(["", "a", "7", "A", "é", "\0"]))
        + text[place + 1 :]
    )
