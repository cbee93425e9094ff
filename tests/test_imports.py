"""What the rules of the layers in setup.cfg do not say of imports."""

from bench.trace import circle_of_imports


def test_no_modules_import_each_other_in_a_circle():
    assert circle_of_imports() == ()
