"""The table of codes that a catalog is searched by (`sotdd.sketches.catalog.basis`), beside the table of its entries.

Everything in it follows from the entries, so it may be missing, behind or ahead of them at any moment: entries without
a code get one in the memory of the process that searches, and codes without an entry are left out. Entries and codes
find each other by the token of the entry, which no two contents share. A new basis replaces the whole table, itself
included, in one commit; codes that another process adds to the table before that are refused by LanceDB, and made again
later.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.memory import available_bytes
from sotdd.sketches.catalog.basis import SAMPLE, Basis, coarse_quantiles, coarse_vector
from sotdd.sketches.catalog.entries import quoted
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.file import from_bytes
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import floor_of_sketches

# The name of the table.
LEARNED = "learned"

# From this many entries on, tidying makes a basis: fewer are searched as fast by their own vectors.
FEWEST = 2000
# A basis is found anew once the catalog has grown by this factor, or as many of its codes are of removed entries.
_GROWN = 1.5
# This many sketches are read at a time, and as many bytes of them.
_TOGETHER, _BYTES_TOGETHER = 256, 1 << 26
# Codes may fill this share of the free memory.
_SHARE_OF_MEMORY = 0.5

_log = logging.getLogger("sotdd.catalog.learned")


@dataclass(frozen=True, eq=False)
class Codes:
    """What the table held at one moment.

    Attributes
    ----------
    basis
        The basis of all codes.
    fit
        Which basis it is.
    tokens
        Arrow array of the tokens of the entries.
    vectors
        (n, W) the codes.
    chances
        (n,) what `chance_of` says of each entry; NaN where it does not know.
    """

    basis: Basis
    fit: str
    tokens: Any
    vectors: NDArray[np.float32]
    chances: NDArray[np.float64]


def chance_of(sketch: Sketch) -> float:
    """What chance gives of squared distances is this times 1/n + 1/m, by the halves of a sketch; NaN without them."""
    floor = floor_of_sketches([(sketch.n_points, sketch.halves)], 2, (2, 2), 0.0)
    return float("nan") if floor is None else floor.power


def read_basis(table: Any, recipe: CatalogRecipe, location: str) -> tuple[Basis, str] | None:  # noqa: ANN401
    """The basis in the table and which one it is; None where it is not for this catalog, or cannot be read."""
    rows = table.search().where("basis IS NOT NULL").select(["fit", "basis"]).to_arrow().to_pylist()
    if len(rows) != 1:
        return None
    try:
        basis = Basis.from_bytes(rows[0]["basis"], location)
    except SotddError as error:  # damaged, or of a later version: it can be made again, and nothing else is lost
        _log.info("the basis of the catalog %s was not read: %s", location, error)
        return None
    fits = basis.fits(recipe) and basis.width == table.schema.field("vector").type.list_size
    return (basis, rows[0]["fit"]) if fits else None


def read_tokens(table: Any, fit: str) -> Any:  # noqa: ANN401
    """The tokens of all entries with a code, as an Arrow array."""
    return _column(_codes_of_fit(table, fit, ["token"]), "token")


def read_codes(table: Any, recipe: CatalogRecipe, location: str) -> Codes | None:  # noqa: ANN401
    """The codes in the table; None where they are not for this catalog, or do not fit into memory."""
    width = table.schema.field("vector").type.list_size
    found = read_basis(table, recipe, location)
    if found is None or 8 * width * table.count_rows() > _SHARE_OF_MEMORY * available_bytes():
        return None
    basis, fit = found
    rows = _codes_of_fit(table, fit, ["token", "vector", "chance"])
    vectors = _column(rows, "vector").flatten().to_numpy().reshape(-1, width)
    return Codes(basis, fit, _column(rows, "token"), vectors, _column(rows, "chance").to_numpy(zero_copy_only=False))


def is_due(n_entries: int, basis: Basis | None, n_codes: int) -> bool:
    """Whether a basis should be found, for the first time or anew."""
    if n_entries < FEWEST:
        return False
    return basis is None or n_entries > _GROWN * basis.n_entries or n_codes > _GROWN * n_entries


def found_anew(snapshot: Snapshot, recipe: CatalogRecipe, seed: int = 0) -> Any:  # noqa: ANN401
    """A new basis and the codes of all entries, as a stream of Arrow batches for the whole table; None without a basis.

    There is none where sketches have too many projections, or values whose squares leave float32.
    """
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    rows, tokens = _rows_and_tokens(snapshot)
    sample = np.sort(np.random.default_rng(seed).permutation(len(rows))[:SAMPLE])
    n_quantiles = coarse_quantiles(recipe)
    if n_quantiles is None:
        return None
    parts = [
        np.array([coarse_vector(one, n_quantiles) for one in sketches])
        for _, sketches in _sketches(snapshot, recipe, rows, sample)
    ]
    basis, fit = Basis.of(np.concatenate(parts), n_quantiles, len(rows)), secrets.token_hex(8)
    if basis is None:
        return None
    fields = {
        "fit": arrow.utf8(),
        "token": arrow.utf8(),
        "vector": arrow.list_(arrow.float32(), basis.width),
        "chance": arrow.float64(),
        "basis": arrow.large_binary(),
    }
    schema = arrow.schema([arrow.field(*pair) for pair in fields.items()])

    def batches() -> Iterator[Any]:
        nothing = np.zeros((1, basis.width), np.float32)
        yield _batch(schema, fit, [""], nothing, [float("nan")], basis.to_bytes())
        for places, sketches in _sketches(snapshot, recipe, rows, np.arange(len(rows))):
            chances = [chance_of(one) for one in sketches]
            yield _batch(schema, fit, [tokens[k] for k in places], basis.codes(sketches, recipe), chances)

    return arrow.RecordBatchReader.from_batches(schema, batches())


def missing_codes(
    snapshot: Snapshot, recipe: CatalogRecipe, basis: Basis, fit: str, known: set[str], fewest: int
) -> Iterator[Any]:
    """The codes of entries that have none, as Arrow tables; none where they are fewer than so many."""
    rows, tokens = _rows_and_tokens(snapshot)
    missing = np.flatnonzero([token not in known for token in tokens])
    if len(missing) < fewest:
        return
    for places, sketches in _sketches(snapshot, recipe, rows, missing):
        yield codes_of([tokens[k] for k in places], sketches, recipe, basis, fit)


def codes_now(
    snapshot: Snapshot,
    recipe: CatalogRecipe,
    rows: NDArray[np.uint64],
    tokens: Sequence[str],
    codes: Codes,
    earlier: Codes | None,
) -> Codes:
    """The codes of entries that have none in the table, from their sketches; those made earlier are used again."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    vectors, chances = np.empty((len(rows), codes.basis.width), np.float32), np.empty(len(rows))
    made: dict[str, int] = {}
    if earlier is not None and earlier.fit == codes.fit:
        made = {token: number for number, token in enumerate(earlier.tokens.to_pylist())}
        again = [(number, made[token]) for number, token in enumerate(tokens) if token in made]
        for number, before in again:
            vectors[number], chances[number] = earlier.vectors[before], earlier.chances[before]
    missing = np.flatnonzero([token not in made for token in tokens])
    for places, sketches in _sketches(snapshot, recipe, rows, missing):
        vectors[places] = codes.basis.codes(sketches, recipe)
        chances[places] = [chance_of(one) for one in sketches]
    return Codes(codes.basis, codes.fit, arrow.array(list(tokens), arrow.utf8()), vectors, chances)


def codes_of(tokens: Sequence[str], sketches: Sequence[Sketch], recipe: CatalogRecipe, basis: Basis, fit: str) -> Any:  # noqa: ANN401
    """The codes of some entries, as an Arrow table."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    vector = arrow.list_(arrow.float32(), basis.width)
    types = (arrow.utf8(), arrow.utf8(), vector, arrow.float64(), arrow.large_binary())
    schema = arrow.schema(list(zip(("fit", "token", "vector", "chance", "basis"), types, strict=True)))
    chances = [chance_of(one) for one in sketches]
    return arrow.Table.from_batches([_batch(schema, fit, tokens, basis.codes(sketches, recipe), chances)])


def _batch(
    schema: Any,  # noqa: ANN401
    fit: str,
    tokens: Sequence[str],
    vectors: NDArray[np.float32],
    chances: Sequence[float],
    basis: bytes | None = None,
) -> Any:  # noqa: ANN401
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    flat = arrow.array(np.ascontiguousarray(vectors).ravel())
    columns = [
        arrow.array([fit] * len(tokens)),
        arrow.array(list(tokens), arrow.utf8()),
        arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        arrow.array(np.asarray(chances, np.float64)),
        arrow.array([basis] * len(tokens), arrow.large_binary()),
    ]
    return arrow.record_batch(columns, schema=schema)


def _codes_of_fit(table: Any, fit: str, columns: list[str]) -> Any:  # noqa: ANN401
    return table.search().where(f"basis IS NULL AND fit = {quoted(fit)}").select(columns).to_arrow()


def _rows_and_tokens(snapshot: Snapshot) -> tuple[NDArray[np.uint64], list[str]]:
    listed = snapshot.listing(["token"])
    return listed["_rowid"].to_numpy(), listed["token"].to_pylist()


def _sketches(
    snapshot: Snapshot, recipe: CatalogRecipe, rows: NDArray[np.uint64], places: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], list[Sketch]]]:
    """Read the sketches at these places of the listing, some at a time."""
    size = 4 * recipe.sketch.n_projections * recipe.n_quantiles
    together = max(1, min(_TOGETHER, _BYTES_TOGETHER // size))
    for start in range(0, len(places), together):
        part = places[start : start + together]
        contents = snapshot.contents(rows[part].tolist())
        yield part, [from_bytes(content, "an entry", recipe.sketch.projections) for content in contents]


def _column(table: Any, name: str) -> Any:  # noqa: ANN401
    """A column as one Arrow array."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    column = table[name]
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else arrow.concat_arrays(column.chunks or [arrow.array([], column.type)])
    )
