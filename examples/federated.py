"""Two clinics and a laboratory compare their data without showing them to anyone.

    python examples/federated.py

All agree on a recipe: here the sketch of a public reference, a file of less than a megabyte. The clinics hold
different parts of one study, so they exchange counts of projected values. The result is the sketch of the whole study,
close to what all data in one place would give. The laboratory sends a sketch of its own. The script lists every file
that is exchanged; none of them contains data points.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import sotdd
from sotdd.demo import digits


def main() -> None:
    """Play all three parties, one after the other."""
    images, labels = digits()
    public, study, laboratory = slice(0, 300), slice(300, 1300), slice(1300, None)
    # The clinics' patients differ: the first has mostly low digits, the second mostly high ones.
    in_first = np.random.default_rng(0).random(1000) < np.where(labels[study] < 5, 0.8, 0.2)
    clinics = {
        "clinic 1": (images[study][in_first], labels[study][in_first]),
        "clinic 2": (images[study][~in_first], labels[study][~in_first]),
    }
    with tempfile.TemporaryDirectory() as folder:
        exchanged = Path(folder)
        # The recipe, made once from public data and given to everyone.
        reference = (images[public], labels[public])
        recipe = sotdd.Projections.fit([reference], n_projections=500)
        sotdd.sketch(reference, recipe, name="public reference").save(exchanged / "reference.sotdd")

        # Each clinic counts its points.
        shared = sotdd.Sketch.load(exchanged / "reference.sotdd").projections
        assert shared is not None
        for clinic, data in clinics.items():
            sotdd.SketchBuilder(shared).add(*data).save(exchanged / f"{clinic}.counts")
        builder = sotdd.SketchBuilder(shared)
        for clinic in clinics:
            builder.merge(sotdd.SketchBuilder.load(exchanged / f"{clinic}.counts"))
        whole_study = builder.finish("whole study")

        # The laboratory sends a sketch; anyone compares.
        sotdd.sketch((images[laboratory], labels[laboratory]), shared, name="laboratory").save(
            exchanged / "laboratory.sotdd"
        )
        from_laboratory = sotdd.Sketch.load(exchanged / "laboratory.sotdd")
        print("Exchanged:")
        for file in sorted(exchanged.iterdir()):
            print(f"  {file.name:<22} {file.stat().st_size / 1e6:5.2f} MB")

    in_one_place = sotdd.sketch((images[study], labels[study]), shared)
    print(f"\nstudy to laboratory, from what was exchanged:   {whole_study.distance(from_laboratory)}")
    print(f"the same with all data in one place:            {in_one_place.distance(from_laboratory)}")
    first, second = (sotdd.sketch(data, shared, name=clinic) for clinic, data in clinics.items())
    print(f"the clinics from each other:                    {first.distance(second)}")


if __name__ == "__main__":
    main()
