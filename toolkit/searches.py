"""What a search sends to a source and finds there, by the service's own parser and adapters."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from adapters import open_adapter
from adapters.contract import Adapter, NotAskableError, Page, ResourceType, SearchQuery
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import one_of
from adapters.mapping.profile import profile_of
from app.console import CannotRunError
from app.errors import ServiceError, answer_for_error
from app.offer import Offer, compute_offer
from app.search.parser import Parameters, context_of, decode_form, parse_search
from app.search.references import linked

BASE_URL = "https://encounters.example/fhir/v3"
"""Stands for the address of the deployment, which a mapping file does not say."""


class RefusedSearchError(CannotRunError):
    """A search that the service refuses; the text is what the client reads."""


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of a mapping over its open source, as the service answers them."""

    mapping: SourceMapping
    adapter: Adapter

    @property
    def offer(self) -> Offer:
        """What clients are offered."""
        return compute_offer(profile_of(self.mapping), self.adapter.capabilities)

    def query(self, kind: ResourceType, parameters: Parameters) -> SearchQuery:
        """Return what a search means. Raises RefusedError."""
        offer = self.offer.resources.get(kind)
        if offer is None or not offer.searchable:
            raise RefusedSearchError(f"{kind} is not searched here.")
        constants, zone = self.mapping.constants, self.mapping.time_zone
        with _refusals():
            context = context_of(BASE_URL, constants, zone)
            search, _ = linked(parse_search(parameters, offer, context), self.adapter)
            return search.query

    def sent(self, query: SearchQuery) -> str:
        """Return what a search sends to the source. Raises RefusedError, AdapterError."""
        with _refusals():
            return (
                self.adapter.explain(query) or "no request is sent: nothing can match"
            )

    def page(self, query: SearchQuery) -> Page:
        """Return what a search finds. Raises RefusedError, AdapterError."""
        with _refusals():
            return self.adapter.search(query)

    def count(self, query: SearchQuery) -> int:
        """Return how many matches a search has. Raises RefusedError, AdapterError."""
        with _refusals():
            return self.adapter.count(query)


@contextmanager
def searching(mapping: SourceMapping) -> Iterator[Searches]:
    """Open the source of a mapping for searches. Raises AdapterError, MappingError."""
    with closing(open_adapter(mapping)) as adapter:
        yield Searches(mapping, adapter)


def parsed_search(search: str) -> tuple[ResourceType, Parameters]:
    """Return a search like `Encounter?date=2024`, with or without an address before it."""
    path, _, query = search.partition("?")
    name = path.rpartition("/")[2]
    if name not in [*ResourceType]:
        text = one_of(name, ResourceType, "a resource type")
        raise CannotRunError(f"{text}; a search is like 'Encounter?patient=42'")
    return ResourceType(name), decode_form(query.encode())


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (ServiceError, NotAskableError) as error:
        raise RefusedSearchError(answer_for_error(error).text or "") from error
