"""Searches of a mapping by the service's own parser and adapters, without a server."""

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
"""An example for the address of the deployment, which no mapping file has."""


class RefusedSearchError(CannotRunError):
    """A search that the service refuses; the text is what the client reads."""


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of a mapping over its open source, as the service answers them."""

    mapping: SourceMapping
    adapter: Adapter

    @property
    def offer(self) -> Offer:
        """The resources and search parameters that clients are offered."""
        return compute_offer(profile_of(self.mapping), self.adapter.capabilities)

    def query(self, kind: ResourceType, parameters: Parameters) -> SearchQuery:
        """Return the query of a search as clients write it. Raises RefusedSearchError."""
        offer = self.offer.resources.get(kind)
        if offer is None or not offer.searchable:
            raise RefusedSearchError(f"{kind} is not searched here.")
        constants, zone = self.mapping.constants, self.mapping.time_zone
        with _refusals():
            context = context_of(BASE_URL, constants, zone)
            search, _ = linked(parse_search(parameters, offer, context), self.adapter)
            return search.query

    def sent(self, query: SearchQuery) -> str:
        """Return the statements or the request of a search.

        Raises RefusedSearchError, AdapterError.
        """
        with _refusals():
            sent = self.adapter.explain(query)
        return sent or "no request is sent: nothing can match"

    def page(self, query: SearchQuery) -> Page:
        """Return a page of matches. Raises RefusedSearchError, AdapterError."""
        with _refusals():
            return self.adapter.search(query)

    def count(self, query: SearchQuery) -> int:
        """Return the number of matches. Raises RefusedSearchError, AdapterError."""
        with _refusals():
            return self.adapter.count(query)


@contextmanager
def searching(mapping: SourceMapping) -> Iterator[Searches]:
    """Open the source of a mapping for searches. Raises AdapterError, MappingError."""
    with closing(open_adapter(mapping)) as adapter:
        yield Searches(mapping, adapter)


def parsed_search(search: str) -> tuple[ResourceType, Parameters]:
    """Return the resource type and the parameters of a search such as `Encounter?date=2024`.

    An address may come before the type. Raises CannotRunError for an unknown type.
    """
    path, _, query = search.partition("?")
    name = path.rpartition("/")[2]
    if name not in [*ResourceType]:
        text = one_of(name, ResourceType, "a resource type")
        raise CannotRunError(f"{text}; a search is like 'Encounter?patient=42'")
    return ResourceType(name), decode_form(query.encode())


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise RefusedSearchError for what the service refuses, with the text for the client."""
    try:
        yield
    except (ServiceError, NotAskableError) as error:
        raise RefusedSearchError(answer_for_error(error).text or "") from error
