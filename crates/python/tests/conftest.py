"""What all tests share."""

import pytest

import alluvium_db


@pytest.fixture
def path(tmp_path):
    return tmp_path / "database"


@pytest.fixture
def db(path):
    with alluvium_db.open(path, durability="buffered") as db:
        yield db
