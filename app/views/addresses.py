"""Where resources are: `_search` stands where an id would, and is no id."""

from werkzeug.routing import BaseConverter


class Segment(BaseConverter):
    """A part of an address that may be an id; whether it is one, who reads it is told.

    `_search` is none: POST alone has it, any other method is 405, and `Allow` says so.
    """

    regex = r"(?!_search\Z)[^/]+"
    part_isolating = True
