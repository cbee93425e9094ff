"""The HTTP parts of a checked document → the typed values of `http_model`."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from adapters.mapping.checks import zone
from adapters.mapping.document import Document
from adapters.mapping.http_model import (
    Basic,
    CountCall,
    ErrorRule,
    HttpSection,
    HttpSource,
    ListCall,
    Login,
    Method,
    OAuth2,
    Paging,
    PagingKind,
    Path,
    ReadCall,
    SearchCall,
    Several,
    SortCall,
    Step,
    SystemParameter,
)
from adapters.mapping.model import CodeTable, Mark
from adapters.mapping.nodes import KeyPath, place
from adapters.mapping.secrets import resolved

_WHOLE = "."
"""The path of the answer itself."""


def path_of(text: str) -> Path:
    """Return the keys of a path with dots."""
    return () if text == _WHOLE else tuple(text.split("."))


def http_source(doc: Document, path: KeyPath) -> HttpSource | None:
    """Return how the source is spoken to, None for a source of another kind."""
    source = doc.http_sources().get(path)
    if source is None:
        return None
    texts = _texts(doc)
    return HttpSource(
        headers=texts(source.get("headers", {})),
        auth=_auth(source.get("auth", {}), texts),
        error=_error(source.get("error")),
    )


def _texts(doc: Document) -> Callable[[Mapping[str, Any]], Mapping[str, str]]:
    def texts(values: Mapping[str, Any]) -> Mapping[str, str]:
        return MappingProxyType(
            {key: resolved(value, doc.environ) for key, value in values.items()}
        )

    return texts


def _auth(
    auth: Mapping[str, Any], texts: Callable[[Mapping[str, Any]], Mapping[str, str]]
) -> Basic | OAuth2 | Login | None:
    if "basic" in auth:
        return Basic(**texts(auth["basic"]))
    if "oauth2" in auth:
        return OAuth2(**texts(auth["oauth2"]))
    if "session" in auth:
        login = auth["session"]
        return Login(
            path=login["path"],
            values=texts(login.get("body", login.get("form", {}))),
            token=path_of(login["token"]),
            header=login["header"],
            format=login.get("format", "{token}"),
            as_json="body" in login,
        )
    return None


def _error(rule: Mapping[str, Any] | None) -> ErrorRule | None:
    if rule is None:
        return None
    words = ("fine", "not_found", "unavailable", "expired")
    sets = {key: frozenset(rule.get(key, ())) for key in words}
    return ErrorRule(path_of(rule["path"]), **sets)


def http_section(
    doc: Document, path: KeyPath, codes: Mapping[str, CodeTable]
) -> HttpSection | None:
    """Return how a section is read and searched, None for another kind of source."""
    section = doc.section(path)
    if not doc.is_http(section):
        return None
    read, sort = section["read"], section.get("sort")
    return HttpSection(
        read=ReadCall(
            read["path"],
            path_of(read.get("row", _WHOLE)),
            place(doc.root, (*path, "read"), at_key=True),
        ),
        list=_list(section["list"], partial(_list_mark, doc, path))
        if "list" in section
        else None,
        search=MappingProxyType(
            {n: _search(n, o, codes) for n, o in section.get("search", {}).items()}
        ),
        sort=SortCall(
            sort["send"],
            MappingProxyType(dict(sort["by"])),
            place(doc.root, (*path, "sort"), at_key=True),
        )
        if sort
        else None,
        order=section.get("order", ""),
    )


def _list_mark(doc: Document, path: KeyPath, *keys: str) -> Mark:
    return place(doc.root, (*path, "list", *keys), at_key=True)


def _list(data: Mapping[str, Any], mark: Callable[..., Mark]) -> ListCall:
    counting = data.get("counting")
    return ListCall(
        path=data["path"],
        rows=path_of(data["rows"]),
        count=data["count"],
        method=Method(data.get("method", Method.GET)),
        total=path_of(data["total"]) if "total" in data else None,
        counting=CountCall(counting["path"], path_of(counting["total"]))
        if counting
        else None,
        paging=_paging(data["paging"], mark("paging")) if "paging" in data else None,
        fixed=MappingProxyType(dict(data.get("fixed", {}))),
        mark=mark(),
        count_mark=mark("count"),
    )


def _paging(data: Mapping[str, Any], mark: Mark) -> Paging:
    if "token" in data:
        token = data["token"]
        path = path_of(token["path"])
        return Paging(PagingKind.TOKEN, token["send"], path, mark=mark)
    if "next" in data:
        return Paging(PagingKind.NEXT, path=path_of(data["next"]), mark=mark)
    if "page" in data:
        first = data.get("first", 1)
        return Paging(PagingKind.PAGE, data["page"], first=first, mark=mark)
    return Paging(PagingKind.OFFSET, data["offset"], mark=mark)


def _search(
    name: str, data: Mapping[str, Any], codes: Mapping[str, CodeTable]
) -> SearchCall:
    told = dict(data)
    step = Step.DAY if name == "birthdate" else Step.SECOND
    system, named = told.pop("system", None), told.pop("time_zone", None)
    return SearchCall(
        name=name,
        several=Several(told.pop("several", Several.ONE)),
        step=Step(told.pop("step", step)),
        zone=zone(named) if named else None,
        system=_system(system, codes) if system else None,
        **told,
    )


def _system(data: Mapping[str, Any], codes: Mapping[str, CodeTable]) -> SystemParameter:
    if "codes" not in data:
        return SystemParameter(data["send"])
    table = codes[data["codes"]].table
    back = {system: code for code, system in reversed([*table.items()])}
    return SystemParameter(data["send"], MappingProxyType(back))
