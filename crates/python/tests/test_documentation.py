"""The types, the docstrings and the examples say what is there."""

import ast
import doctest
import inspect
import pathlib
import re

import pytest

import alluvium_db
from alluvium_db import _native

PACKAGE = pathlib.Path(alluvium_db.__file__).parent
README = pathlib.Path(__file__).parent.parent / "README.md"


def _parameters(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {argument.arg for argument in named} - {"self", "cls"}


def _check_function(where, stub, found):
    assert found.__doc__ or stub.name.startswith("_"), f"{where} has no docstring"
    try:
        signature = inspect.signature(found)
    except ValueError:
        return
    real = signature.parameters.values()
    names = {parameter.name for parameter in real if parameter.kind is not parameter.VAR_KEYWORD} - {"self"}
    if any(parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) for parameter in real):
        return
    assert names == _parameters(stub), where


def test_the_types_are_those_of_the_module():
    tree = ast.parse((PACKAGE / "_native.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    exported = {name for name in dir(_native) if not name.startswith("__")} - {"_note_fork"}
    assert classes.keys() | functions.keys() == exported | {"_note_fork"}
    for name, node in functions.items():
        if name != "_note_fork":
            _check_function(name, node, getattr(_native, name))
    for name, node in classes.items():
        found = getattr(_native, name)
        assert found.__doc__, name
        stubs = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
        public = {method for method in vars(found) if not method.startswith("_")}
        assert public == {method for method in stubs if not method.startswith("_")}, name
        for method, stub in stubs.items():
            assert hasattr(found, method), f"{name}.{method}"
            if not method.startswith("__") and inspect.isroutine(vars(found)[method]):
                _check_function(f"{name}.{method}", stub, vars(found)[method])


def test_the_options_are_those_of_the_types(tmp_path):
    tree = ast.parse((PACKAGE / "_native.pyi").read_text())
    stub = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "open")
    options = _parameters(stub) - {"path"}
    with alluvium_db.open(tmp_path / "db", **dict.fromkeys(options)) as db:
        assert not db
    listed = set(re.findall(r"^\| `(\w+)` \|", README.read_text(), re.MULTILINE)) if README.exists() else options
    assert listed == options


@pytest.mark.skipif(not README.exists(), reason="only in the repository")
def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 5
    for number, example in enumerate(examples):
        for package in ("pyarrow", "datasketch"):
            if package in example:
                pytest.importorskip(package)
        exec(compile(example, f"README.md, example {number}", "exec"), {})


def test_the_example_of_the_package_runs():
    assert doctest.testmod(alluvium_db).failed == 0


def test_all_that_is_exported_is_there():
    for name in alluvium_db.__all__:
        assert getattr(alluvium_db, name).__doc__, name
