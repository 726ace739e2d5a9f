"""How far apart are labelled datasets? The sliced optimal transport dataset distance.

>>> import numpy as np, sotdd
>>> rng = np.random.default_rng(0)
>>> a = rng.normal(size=(200, 4)), rng.integers(3, size=200)
>>> b = rng.normal(size=(300, 4)), rng.choice(["cat", "dog"], size=300)
>>> sotdd.distance(a, b)
0.09570 ± 0.00044 (s-OTDD, p=2, 1,000 projections)
"""

import lazy_loader

# Each name is loaded when it is first used, so that importing takes no time, and the command line can answer an
# interruption, or a lack of memory, in one line from its beginning. The names are in `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
