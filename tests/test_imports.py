"""What the rules of the layers in setup.cfg do not say of imports."""

from graphlib import TopologicalSorter

import grimp

PACKAGES = ("app", "adapters", "toolkit", "explorer", "demo")


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports in functions count; those for types alone do not."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imported = {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
    }
    assert {"app.views", "adapters.sql.adapter"} <= {*imported}
    # Raises CycleError, which names the modules.
    TopologicalSorter(imported).prepare()
