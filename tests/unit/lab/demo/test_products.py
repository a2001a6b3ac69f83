"""The products of an owner: in memory and in a database that refuses what comes late."""

from pathlib import Path

import pytest

from lab.demo.caches.products import Products, make_database, product, write_past
from tenure import Fenced


@pytest.fixture
def products(tmp_path: Path) -> Products:
    make_database(tmp_path, 2)
    return Products(tmp_path)


def test_what_was_written_outlives_its_owner(products: Products, tmp_path: Path) -> None:
    assert products.load(product(0), 5) == 1
    products.store(product(0), 2, 5)
    assert (products.load(product(0), 5), products.load(product(1), 5)) == (2, 1)
    assert products.load("product-9", 5) is None
    products.close()
    assert Products(tmp_path).load(product(0), 6) == 2


def test_a_past_owner_cannot_write_what_a_later_one_has_read(
    products: Products, tmp_path: Path
) -> None:
    later = Products(tmp_path)
    later.load(product(0), 6)
    with pytest.raises(Fenced, match="product-0 has been read or written under a higher number"):
        products.store(product(0), 2, 5)
    assert later.load(product(0), 6) == 1
    products.store(product(1), 2, 5)


def test_a_write_past_the_owner_is_seen_by_whoever_reads_the_database(
    products: Products, tmp_path: Path
) -> None:
    write_past(tmp_path, product(0), 7)
    assert products.load(product(0), 5) == 7
