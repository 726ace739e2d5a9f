"""What each parameter is given, by its name: expressions of the words in `values`.

A parameter is looked up as ``Class.method.name`` or ``function.name``, then by its name alone. A public name whose
parameters are not all here fails `test_every_parameter_has_a_pool`: whoever adds it says what it should be given.
"""

# fmt: off

# Anything at all: what a parameter is given instead, now and then.
ODD = (
    "0", "-1", "1", "2", "3", "10**18", "2**63", "10**30", "-10**30", "10**400", "0.0", "-0.0", "0.5", "1.5", "1e-320",
    "1e-200", "1e200", "nan", "inf", "-inf", "True", "False", "None", "''", "'x'", "'auto'", "'\\0'", "'é' * 300",
    "b'x'", "()", "[]", "{}", "set()", "object()", "len", "int", "1j", "Decimal('2')", "Decimal('NaN')",
    "Decimal('sNaN')", "Decimal('1e999')", "Fraction(1, 3)", "Fraction(4, 2)", "Fraction(10**400, 3)",
    "datetime.date(2020, 1, 1)", "float32(2)", "float16('nan')", "int8(3)", "uint8(2)", "np.uint64(2**63)",
    "longdouble(2)", "np.bool_(True)", "np.str_('x')", "np.datetime64('NaT')", "np.complex64(1)", "array(4)",
    "array([1, 2])", "array('x')", "array(None)", "array([])", "np.ma.masked", "[1, 2]", "[[1]]", "[None]", "(1, 2, 3)",
    "{'a': 1}", "Path('x')", "io.BytesIO(b'x')", "re.compile('x')", "slice(0, 2)", "range(3)", "iter([1])", "sotdd",
    "lambda *a, **k: None", "Endless()", "pd.NA", "pd.NaT", "torch.tensor(2)", "torch.zeros(2)",
    "np.random.default_rng(0)", "points()", "pair()", "seen_through()", "in_sketch()", "a_distance()", "Row(1, 2)",
    "Counter()", "dask.delayed(pair)()",
)
# Two features, mostly: calls that take two datasets get somewhere.
GOOD_DATA = (
    "pair()", "pair(7, 3, 1)", "pair(30, 4, 2)", "points(5)", "points(8, seed=3) + 3", "points(1)", "pair(1)",
    "pair(2, 2, 5)", "(points(6), list('abacba'))", "(points(8).astype(float32), ones(8))",
    "(points(9).astype(float16), np.arange(9) % 2)", "points(6).tolist()", "torch.tensor(points(7))",
    "(torch.tensor(points(7)).float(), torch.arange(7) % 3)", "pd.DataFrame(points(6), columns=['u', 'v'])",
    "pl.DataFrame({'u': [0.0, 1, 2], 'v': [1.0, 0, 5]})",
    "pa.table({'u': [0.0, 1, 2], 'v': [1.0, 0, 5], 'label': ['a', 'b', 'a']})", "'a.npz'", "Path('a.npz')", "'a.csv'",
    "'a.parquet'", "'x.npy'", "sotdd.LabelledData.of(pair())",
    "scipy.sparse.csr_array(points(9))", "(scipy.sparse.coo_matrix(points(9)), np.arange(9) % 2)",
)
ODD_DATA = (
    "odd_points(SEED)", "odd_points(SEED)", "odd_pair(SEED)", "odd_pair(SEED)", "(points(6), odd_labels(6, SEED))",
    "zeros((5, 2))", "ones((4, 2)) * 7", "points(4) * 1e200", "points(4) * 1e-200", "points(4) * 1e-310",
    "points(4) + 1e9", "points(4, 1)", "points(3, 5)", "points(3, 50)", "pair(200, 200)",
    "(points(200), np.arange(200))", "(points(40), np.arange(40) % 7 * 0)", "points(40)[::3]", "points(40)[:, ::-1]",
    "points(6).T[:, :2]", "np.broadcast_to(points(1), (5, 2))", "np.asfortranarray(points(6))",
    "np.ma.masked_greater(points(6), 0)", "np.ma.array(points(6))", "np.matrix(points(6))",
    "np.rec.array([(1.0, 2.0)])", "points(6).astype(object)", "points(6).astype(complex)", "scipy.sparse.eye(4, 2)",
    "scipy.sparse.eye(4, 2).tocsr()", "scipy.sparse.csc_array((4, 2))", "scipy.sparse.csr_array((0, 2))",
    "scipy.sparse.csr_array(points(4) * nan)", "scipy.sparse.csr_array(points(4) * 1e200)",
    "scipy.sparse.csr_array(points(4).astype(complex))", "(scipy.sparse.csr_array(points(4)), scipy.sparse.eye(4))",
    "scipy.sparse.csr_array(([1.0], [7], [0, 1, 1]), shape=(2, 2))", "scipy.sparse.coo_array(points(4)[:, 0])",
    "images()", "images(3, 4, 3)", "(images(), list('aabbcc'))",
    "torch.zeros(4, 2).to_sparse()", "torch.zeros(4, 2, device='meta')", "torch.zeros(4, 2, dtype=torch.complex64)",
    "torch.zeros(4, 2, dtype=torch.bfloat16)", "torch.zeros(4, 2, requires_grad=True)",
    "torch.quantize_per_tensor(torch.zeros(4, 2), 0.1, 0, torch.quint8)", "torch.zeros(4, 2, dtype=torch.bool)",
    "(torch.zeros(4, 2), torch.zeros(4, device='meta'))", "(points(4), torch.zeros(4).to_sparse())",
    "(points(3), [Decimal('sNaN'), 1, 2])", "(points(3), [10**400, 1, 2])", "(points(3), None)",
    "(points(3), [None] * 3)", "(points(3), pd.Series(['a', None, 'b']))", "(points(3), pl.Series([1, None, 2]))",
    "(points(3), np.arange(4))", "(points(3), 'abc')", "(points(3), {0: 1})", "(points(3), eye(3))",
    "(points(3), array(['a', 'b', 'c'], object))", "(points(3), pd.Categorical(['a', 'b', 'a']))",
    "pd.DataFrame({'u': [1, 2], 'label': ['a', 'b']})", "pd.DataFrame({'u': [1.0, None], 'v': [1, 2]})",
    "pd.DataFrame({'u': ['x', 'y'], 'v': [1, 2]})", "pd.DataFrame()",
    "pl.DataFrame({'u': [1, 2], 'label': [None, 'a']})", "pl.DataFrame({'u': [1, 2]}, schema={'u': pl.Int128})",
    "pl.DataFrame({'u': [Decimal(1)], 'v': [2]})", "pl.LazyFrame({'u': [1, 2]})", "pa.table({'u': [1, None]})",
    "[pair(), pair()]", "[(points(1)[0], 'a'), (points(1)[0], 'b')]", "Endless()", "iter([(points(1)[0], 1)])", "5",
    "None", "'missing.npz'", "'/'", "'odd.csv'", "'odd.npz'", "'empty'", "'folder'", "''", "'a.csv::label='",
    "'a.csv::label=u'", "'a.npz::features=y,label=X'", "'a.npz::nonsense=1'", "'\\0'", "'x' * 5000", "'\\ud800'",
    "b'a.npz'", "'a.sotdd'", "'odd.sotdd'", "in_sketch()", "dask.delayed(pair)()", "{'a': pair()}",
    "longdouble(points(4))", "points(4).astype('>f8')", "np.uint64(2**63) * ones((3, 2), 'u8')",
)
DATA = GOOD_DATA * 8 + ODD_DATA * 2
# What an odd dataset may be hidden in.
SEVERAL = (
    "[pair(), pair(7, 3, 1)]", "{'a': pair(), 'b': points(5), 'c': pair(30, 4, 2)}", "[points(5)]",
    "{'a': 'a.npz', 'b': 'a.csv'}", "['a.npz', 'a.npz']", "[pair(), odd_pair(SEED)]", "[points(4), odd_points(SEED)]",
    "{'x': odd_pair(SEED), 'y': odd_pair(SEED)}", "(pair(), pair(seed=3))", "[pair(), 'a.sotdd']",
    "[in_sketch(), in_sketch(seed=1)]", "[in_sketch(), pair()]", "[]", "{}", "{1: pair(), 2: pair()}",
    "{'': pair(), 'b': pair()}", "iter([pair()])", "pair()", "[pair(), None]", "{'a': None}", "5",
    "[points(4, 30), points(5, 30, 1)]", "[points(4, 30) * 1e200, points(5, 30, 1) * 1e200]",
    "[points(4, 30) * 1e-200]", "[torch.tensor(points(4, 30)), torch.tensor(points(3, 30))]",
    "[torch.tensor(points(4, 30)) * 1e200, torch.tensor(points(3, 30))]", "[ones((3, 30))]", "[points(4, 30) * 1e-310]",
    "[points(3), points(3, 5)]",
)
COUNTS = (
    "1", "2", "3", "7", "64", "65", "int8(5)", "0", "-1", "10**18", "10**30", "2.0", "Decimal(3)", "True", "nan", "'3'",
)
SMALL_COUNTS = ("1", "2", "3", "5", "int64(4)", "0", "-1", "10**18", "10**30", "1.5", "True", "None")
NUMBERS = (
    "1", "2", "0.5", "1e-3", "1e-300", "1e300", "float32(0.25)", "0", "-1.0", "nan", "inf", "Fraction(1, 2)",
    "Decimal('0.5')", "10**400", "'1'", "True",
)
LEVELS = (
    "0.95", "0.05", "0.5", "1e-300", "1 - 1e-16", "float32(0.5)", "Fraction(1, 2)", "Decimal('0.5')", "0", "1", "2",
    "nan",
)
FLAGS = ("True", "False", "np.bool_(True)", "1", "0", "'yes'", "None")
DEVICES = ("'auto'", "'cpu'", "'cpu'", "torch.device('cpu')", "'cuda'", "'cuda:99'", "'meta'", "'nonsense'", "''", "5")
NAMES = ("'a'", "'b'", "'c'", "''", "'é'", "'x\\ny'", "'\\x1b[31m'", "'x' * 5000", "'\\0'", "'missing'", "1")
PATHS = (
    "'out'", "Path('out')", "'folder/out'", "'missing/out'", "'folder'", "''", "'/'", "'\\0'", "'x' * 5000",
    "'\\ud800'", "b'out'", "5", "'a.npz'",
)
FILES = (
    "'a.sotdd'", "'builder'", "'statistics'", "Path('a.sotdd')", "'odd.sotdd'", "'missing'", "'folder'", "'empty'",
    "'a.npz'", "''", "'\\0'", "'/'", "5", "'a.ref'",
)
AXES = ("None", "Figure().subplots()", "Figure().subplots(2)", "[]", "5")
GENERATORS = ("np.random.default_rng(0)", "np.random.default_rng(SEED)", "np.random.RandomState(0)", "None", "0")
MATRICES = (
    "points(4, 2)", "points(4, 3)", "ones((4, 2))", "points(4).tolist()", "[[1.0]]", "[[1, 2], [3]]", "zeros((0, 2))",
    "points(4) * nan", "points(4).astype(complex)", "points(4).astype(object)", "points(4) * 1e200", "[['a']]", "5",
    "None", "torch.zeros(4, 2)", "ones(4)",
)
VECTORS = (
    "ones(4)", "points(4, 1)[:, 0]", "zeros(4)", "[1.0, 2, 3, 4]", "[]", "ones(4) * nan", "ones((4, 4))", "None", "5",
    "array(['a'] * 4)", "ones(4) * 1e200", "-ones(4)",
)
ROWS = ("slice(0, 2)", "slice(None)", "slice(1, 1)", "slice(0, 100)")
COLUMNS = ("None", "('u', 'v')", "('v', 'u')")
TENSORS = (
    "torch.tensor(points(7)).float()", "torch.tensor(points(7))", "torch.tensor(points(9, seed=1)).float()",
    "torch.tensor(points(7)).float().requires_grad_()", "torch.tensor(points(1)).float()",
    "torch.tensor(points(7)).half()", "torch.tensor(points(7)).bfloat16()", "torch.zeros(4, 2)",
    "torch.tensor(points(7, 3))", "torch.zeros(4, 2).to_sparse()", "torch.zeros(4, 2).to_sparse_csr()",
    "torch.zeros(4, 2, device='meta')", "torch.zeros(4, 2, dtype=torch.complex64)",
    "torch.quantize_per_tensor(torch.zeros(4, 2), 0.1, 0, torch.quint8)", "torch.zeros(4, 2, dtype=torch.int64)",
    "torch.zeros(0, 2)", "torch.zeros(())", "torch.full((4, 2), nan)", "torch.tensor(points(7)) * 1e200",
    "torch.tensor(points(7)).float() * 1e30", "torch.tensor(points(7)) * 1e-310", "points(7)", "None", "5",
    "torch.nested.nested_tensor([torch.zeros(2), torch.zeros(2)])", "torch.zeros(4, 2, dtype=torch.float8_e4m3fn)",
    "torch.nn.Parameter(torch.ones(4, 2))", "torch.zeros(2, 4).T", "torch.zeros(4, 2).expand(4, 2)",
)
TENSOR_LABELS = (
    "torch.arange(7) % 2", "torch.arange(9) % 3", "list('abababa')", "np.arange(7) % 2", "torch.zeros(7)",
    "torch.full((7, 2), 0.5)", "torch.full((7, 2), 0.5).double()", "torch.full((9, 3), 1 / 3).softmax(1)",
    "torch.full((7, 2), nan)", "torch.zeros(7, 2)", "torch.zeros(7, device='meta')", "torch.zeros(7, 2, device='meta')",
    "torch.full((7, 2), 0.5).to_sparse()", "torch.arange(7).to_sparse()", "torch.zeros(7, dtype=torch.complex64)",
    "torch.zeros(4)", "torch.zeros(1)", "['a']", "odd_labels(7, SEED)", "None", "5", "torch.full((7, 2), 0.5).half()",
    "torch.full((7, 2), 0.5, requires_grad=True)", "torch.zeros(7, 0)",
    "torch.quantize_per_tensor(torch.zeros(7), 0.1, 0, torch.quint8)", "np.arange(4)",
)
PROJECTIONS = (
    "seen_through()", "seen_through(65)", "seen_through(label_law='quantiles')",
    "seen_through(shared_directions=False)", "seen_through(directions=Bent())", "seen_through(label_law=Medians())",
    "seen_through(tilt=True)", "seen_through(scale=None)",
    "sotdd.Projections.from_arrays(theta=points(4), psi=points(4, 3), orders=ones((4, 2)))",
)
POOLS: dict[str, tuple[str, ...]] = {
    # data
    "a": DATA,
    "b": DATA,
    "source": DATA,
    "target": DATA,
    "data": DATA,
    "batch": DATA,
    "datasets": SEVERAL,
    "candidates": SEVERAL,
    "SketchBuilder.add.features": DATA,
    "SketchWindow.add.features": DATA,
    "ClassStatistics.add.features": DATA,
    "PrivateBuilder.add.features": DATA,
    "ScaleStatistics.add.features": DATA,
    "part": ("'mon'", "'tue'", "''", "None", "5", "'a' * 10**6", "[]"),
    "labels": (
        "np.arange(9) % 2", "None", "list('ababababa')", "odd_labels(9, SEED)", "np.arange(4)", "'keep'", "'move'", "5",
    ),
    "batches": (
        "[pair(), pair(seed=1)]", "(pair() for _ in range(2))", "lambda: iter([pair()])", "lambda: 5", "[]",
        "[odd_pair(SEED)]", "5", "pair()", "lambda: [pair()]", "[None]", "lambda x: []", "iter([])",
        "[pair(), points(3, 5)]", "sotdd.inputs.ParquetBatches.open('a.parquet')", "[pair(), (zeros((0, 2)), [])]",
    ),
    # how projections are drawn
    "n_projections": COUNTS,
    "n_moments": ("None", "1", "3", "5", "0", "-1", "65", "10**30", "2.5", "True"),
    "moments": (
        "None", "(1.0, 2.5)", "sotdd.UniformOrders(4)", "sotdd.ZeroTruncatedPoisson()", "[1, 2]", "[0]", "[nan]", "'x'",
        "[10**400]", "[Decimal(1)]", "iter([1.0])", "sotdd.UniformOrders", "Wrong()",
    ),
    "label_law": (
        "None", "'moments'", "'quantiles'", "'paper'", "sotdd.ClassQuantiles(4)", "sotdd.Moments(2)", "Medians()",
        "'x'", "Wrong()", "sotdd.Moments", "5",
    ),
    "directions": (
        "None", "sotdd.Sphere()", "sotdd.Orthogonal()", "sotdd.Hadamard()", "sotdd.Sphere(5)", "Coordinates()",
        "Bent()", "Wrong()",
        "sotdd.Convolution((2, 1), 'stride')", "sotdd.Sphere", "'x'", "Tilted(eye(1, 2), ones(1) * 2)",
    ),
    "shared_directions": FLAGS,
    "structured": FLAGS,
    "tilt": FLAGS,
    "scale": (
        "'auto'", "'pooled'", "'features'", "None", "sotdd.Scaler([0.0, 0.0], 2.0)", "sotdd.Scaler(zeros(3), 1.0)",
        "'x'", "2.0",
    ),
    "Scaler.scale": (
        "1.0", "ones(2)", "0", "-1", "nan", "1e-320", "'1'", "ones(3)", "Decimal(1)", "Fraction(1, 2)", "array([1, 0])",
        "None",
    ),
    "seed": ("0", "7", "np.random.default_rng(3)", "int64(5)", "10**30", "-1", "1.5", "None", "True", "Decimal(1)"),
    # how a distance is measured
    "p": (
        "1", "2", "1.5", "3", "2.0", "50", "1e3", "1e308", "0.5", "nan", "inf", "Fraction(3, 2)", "Decimal(2)", "'2'",
        "float32(1.5)",
    ),
    "projections": PROJECTIONS,
    "estimator": ("'auto'", "'plain'", "'controlled'", "'x'", "None"),
    "method": ("'sotdd'", "'otdd'", "'otdd-gaussian'", "'wte'", "'chsw'", "'frechet'", "'sw'", "'mmd'", "'x'", "None"),
    "rel_tol": ("None", "0.5", "0.3", "nan", "0", "Decimal('0.5')"),
    "max_projections": ("64", "65", "100", "0", "10**30"),
    "noise_floor": ("False", "True", "2", "5", "1", "0", "2.5", "10**30", "10**18"),
    "device": DEVICES,
    "precision": ("'float32'", "'tf32'", "'x'", "None"),
    "progress": ("None", "False", "lambda done, total: None", "5", "'x'"),
    "n_permutations": SMALL_COUNTS,
    "statistic": ("'combined'", "'balanced'", "'distance'", "'x'"),
    "label_names": ("'ignore'", "'match'", "'x'"),
    "distance.label_names": ("'auto'", "'ignore'", "'match'", "'x'", "None", "5"),
    "explain.label_names": ("'auto'", "'ignore'", "'match'", "'x'", "None", "5"),
    "max_points": ("None", *SMALL_COUNTS),
    "n_splits": ("19", "20", "5", "10**30", "10**18", "None"),
    "settings": ("{}",),
    "level": LEVELS,
    "levels": ("(0.05, 0.5)", "[]", "[nan]", "0.5", "None", "[Decimal('0.5')]", "(-1,)", "['x']", "{0.5: 1}"),
    "per_projection": FLAGS,
    "axes": AXES,
    "ax": AXES,
    "limit": ("12", "None", "0", "1", "-1", "2.5", "'x'", "10**30", "True"),
    "side": ("0", "1", "2", "-1", "'x'", "0.5"),
    "pair": ("('a', 'b')", "('a', 'a')", "('a', 'x')", "'ab'", "('a',)", "0", "(1, 2)", "None", "([], {})"),
    "matrix": ("a_matrix()", "a_matrix(noise_floor=2)", "a_matrix(method='frechet')", "None", "eye(3)"),
    "result": (
        "a_matrix()", "a_matrix(noise_floor=2)", "a_matrix(method='frechet')", "a_test()", "an_explanation()", "None",
        "eye(3)",
    ),
    "explanations": (
        "None", "'all'", "[('a', 'b')]", "[('a', 'x')]", "{('a', 'b'): an_explanation()}", "[]", "5", "'x'", "[('a',)]",
    ),
    "report.datasets": ("None", "{'a': pair(), 'b': pair(7, 3, 1), 'c': points(5)}", "[pair()]", "5", "{'a': pair()}"),
    "title": ("'title'", "''", "'<script>'", "5", "None", "'\\ud800'"),
    "path": PATHS,
    "steps": SMALL_COUNTS,
    "learning_rate": NUMBERS,
    "label_learning_rate": NUMBERS,
    "fresh": FLAGS,
    "snapshots": (
        "2", "3", "[0]", "[0, 1]", "[]", "1", "10**30", "[-1]", "[10**30]", "'ab'", "None", "[nan]", "range(2)", "2.5",
    ),
    "flow.labels": ("'keep'", "'move'", "'x'", "None"),
    "run_length": ("2", "200", "1", "0", "10**30", "10**18", "2.5", "True"),
    # opening
    "label": ("'auto'", "None", "'label'", "'u'", "'y'", "0", "-1", "'x'", "''", "5.5"),
    "open_dataset.features": ("None", "'u'", "['u', 'v']", "'X'", "0", "[0, 1]", "[]", "['u', 'u']", "'x'", "5.5"),
    "features": ("None", "'u'", "['u', 'v']", "[]", "'x'", "['u', 'u']", "5"),
    "image_size": ("None", "4", "(2, 3)", "0", "-1", "10**9", "10**30", "(1,)", "'x'", "2.5", "(4, 10**30)"),
    "image_mode": ("None", "'L'", "'RGB'", "'x'", "1"),
    "transform": (
        "None", "lambda x: x", "lambda x: np.asarray(x).reshape(len(x), -1)", "lambda x: 5", "5", "lambda x: x[:1]",
        "lambda x: [None] * len(x)",
    ),
    "encoder": (
        "None", "lambda batch: [[1.0, 2.0] for _ in batch]", "lambda batch: 5", "5", "''",
        "lambda batch: [[nan]] * len(batch)",
    ),
    "encoder_name": ("None", "'x'", "''", "'/'", "5"),
    "open_dataset.bins": ("None", "1", "2", "5", "0", "-1", "10**9", "10**30", "2.5", "'x'"),
    "drop_missing": FLAGS,
    "exclude": ("None", "'u'", "['u', 'v']", "'*'", "'u*'", "[]", "'x'", "5", "[5]"),
    "one_hot": ("False", "True", "2", "100", "0", "1", "-1", "10**30", "2.5", "'x'", "None"),
    "dates": FLAGS,
    "missing": ("'error'", "'drop'", "'mean'", "'x'", "None", "5"),
    "separator": ("None", "','", "';'", "'tab'", "'ab'", "''", "'\\n'", "5"),
    "decimal": ("None", "'.'", "'comma'", "';'", "''", "5"),
    "encoding": ("None", "'utf-8'", "'latin-1'", "'utf-16'", "'x'", "''", "5"),
    "broken": ("'refuse'", "'skip'", "'x'"),
    "split": ("None", "'train'", "''", "5"),
    "name": ("None", *NAMES),
    "block": ROWS,
    "LabelledData.take.rows": ("array([0])", "array([0, 1, 1])", "array([8])"),
    "rows": ROWS,
    "batch_rows": ("1", "5", "0", "-1", "10**30", "2.5", "None"),
    "ParquetBatches.open.source": (
        "'a.parquet'", "['a.parquet']", "Path('a.parquet')", "'a.csv'", "'*.parquet'", "'missing'", "[]", "5", "''",
        "'\\0'",
    ),
    "pieces": ("()", "tuple(sotdd.inputs.ParquetBatches.open('a.parquet').pieces)"),
    # sketches
    "n_quantiles": ("8", "1", "2", "512", "None", "0", "-1", "10**18", "10**30", "2.5", "True"),
    "sketch": ("in_sketch()", "in_sketch(seed=1)", "in_sketch(n_projections=5)", "None", "pair()", "'a.sotdd'"),
    "other": (
        "in_sketch(seed=1)", "built(seed=1)", "counted(seed=1)", "spread(seed=1)", "in_sketch(n_projections=5)", "None",
        "a_private(seed=1)", "a_private(seed=1).release(epsilon=1, delta=0)",
        "pair()", "5", "'a.sotdd'",
    ),
    "half": FLAGS,
    "with_sketch": FLAGS,
    "classes": (
        "[0, 1, 2]", "range(3)", "np.arange(3)", "list('ab')", "[]", "[0, 0]", "'ab'", "None", "5", "[[1]]", "[nan]",
        "range(10**9)", "{'a': 1}", "np.zeros((2, 2))",
    ),
    "epsilon": ("1000", *NUMBERS),
    "delta": ("0", "1e-6", "0.1", "1e-300", "0.5", *NUMBERS),
    "max_norm": ("None", *NUMBERS),
    "reach": ("None", "5", *NUMBERS),
    "max_label": ("None", *NUMBERS),
    "n_bins": COUNTS,
    "dim": ("4", "1", "128", "0", "-1", "10**18", "10**30", "2.5", "None"),
    "statistics": ("None", "counted()", "spread()", "5"),
    "load.path": FILES,
    "storage_options": ("None", "{}", "{'x': 'y'}", "5"),
    "overwrite": FLAGS,
    "metadata": (
        "None", "{}", "{'kind': 'x'}", "{'kind': nan}", "{'name': 'x'}", "{'kind': object()}", "{1: 2}", "5",
        "{'kind': 10**30}", "{'x y': 1}",
    ),
    "sketches": (
        "{'n1': in_sketch(), 'n2': in_sketch(seed=1)}", "[]", "{}", "[in_sketch()]", "5", "{'s0': in_sketch()}",
        "{'n': None}", "[('x', in_sketch())]", "{1: in_sketch()}",
    ),
    "where": (
        "None", "\"kind = 'small'\"", "'size > 1'", "'size >'", "''", "'x = 1'", "'size > 1; DROP TABLE x'", "5",
        "'(' * 500", "\"repeat('x', 1000) = name\"",
    ),
    "k": ("1", "2", "10", "0", "-1", "10**18", "10**30", "2.5", "None"),
    "rank_by": ("'excess'", "'distance'", "'value'", "None", "5"),
    "Catalog.name": ("'s0'", "'s1'", *NAMES),
    "old": ("'s0'", "'missing'", "''", "5"),
    "new": ("'s9'", "'s0'", "''", "'x' * 5000", "'\\0'", "5"),
    "Catalog.path": (
        "'catalog'", "'new'", "'folder'", "'a.npz'", "''", "'\\0'", "5", "'x' * 5000", "'\\ud800'", "'s3://'",
    ),
    "Catalog.nearest.source": ("in_sketch(seed=4)", "'s0'", "pair()", *ODD_DATA[:4], "None", "'missing'", "'a.sotdd'"),
    "client": ("5", "'tcp://127.0.0.1:1'", "object()"),
    "cluster.sketch.source": ("5", "[]", "'missing.parquet'", "None", "pair()", "['x']", "''"),
    # laws and what they draw
    "ClassQuantiles.levels": COUNTS,
    "weight": NUMBERS,
    "rng": GENERATORS,
    "n_features": ("2", "1", "3", "0", "-1", "2.5", "10**30"),
    "image_shape": (
        "(2, 1)", "(4, 4)", "(3, 4, 4)", "(0, 4)", "()", "(10**9, 10**9)", "5", "'x'", "(2.5, 2)", "None", "(28, 28)",
        "(10**30, 2)",
    ),
    "kernels": (
        "'auto'", "'stride'", "'paper'", "'x'", "[(2, 1)]", "[(2, 1), (3, 1)]", "[(0, 1)]", "5", "[5]", "[]", "None",
        "[((2, 1), (1, 1))]", "[(2, 0)]", "[(10**30, 1)]",
    ),
    "clamp": ("None", *NUMBERS),
    "cut": ("None", *NUMBERS),
    "channels": ("'first'", "'last'", "'x'", "None", "[]"),
    "max_order": ("1", "4", "170", "171", "0", "2.5", "True", "None", "'4'"),
    "rates": (
        "None", "(1.0, 2.0)", "[]", "[0]", "[nan]", "5", "'x'", "[1e300]", "['1']", "[Decimal(1)]", "iter([1])",
        "[10**400]", "[None]", "[Decimal('sNaN')]",
    ),
    "orders": (
        "ones((4, 2))", "ones((4, 2), int64)", "[[1, 2]] * 4", "zeros((4, 2))", "ones((4, 2)) * 170",
        "ones((4, 2)) * 171", "ones((4, 2)) * nan", "sotdd.UniformOrders(3)", "[[1.5, 1]] * 4", "'x'", "Wrong()",
    ),
    "uniforms": (
        "np.random.default_rng(0).random((4, 2))", "zeros((4, 1))", "ones((4, 2))", "zeros(4)", "5", "None", "[[0.5]]",
        "ones((4, 2)) * nan", "zeros((0, 2))", "-ones((4, 2))",
    ),
    "theta": MATRICES,
    "psi": ("points(4, 3)", *MATRICES),
    "phi": ("None", *MATRICES),
    "importance": ("None", *VECTORS),
    "basis": ("eye(1, 2)", "eye(2)", *MATRICES),
    "stretch": ("ones(1) * 2", "ones(2)", *VECTORS),
    "weights": VECTORS,
    "coefficients": MATRICES,
    "parameters": MATRICES,
    "summary": ("Medians.summary", "5", "None"),
    "values": ("np.sort(points(4, 1)[:, 0])", "np.sort(points(3, 5))", *VECTORS, "'x'", "zeros((2, 0))"),
    "masses": ("None", *VECTORS),
    "kernel": ("(2, 2)", "(1, 3)", "5", "None", "(0, 1)", "'ab'"),
    "stride": ("(1, 1)", "(2, 1)", "5", "None", "(0, 1)"),
    "start": (
        "0", "64", "-64", "1", "128", "10**30", "0.0", "nan", "None", "'x'", "Decimal(64)", "Fraction(64)", "True",
    ),
    "stop": ("4", "0", "64", "200", "-1", "10**30", "2.5", "nan", "None", "'x'", "True"),
    "centre": (
        "zeros(2)", "[0.0, 1.0]", "zeros(3)", "[nan, 0]", "5", "None", "zeros((2, 2))", "['a', 'b']", "[]", "[1j, 0]",
        "[10**400, 0]", "[Decimal(1), 0]",
    ),
    "columns": COLUMNS,
    "remarks": ("()", "('x',)"),
    # peers
    "inner": ("'exact'", "'gaussian'", "'x'", "None", "[]"),
    "outer": ("'exact'", "'sinkhorn'", "'x'", "None", "[]"),
    "debias": ("None", "'difference'", "'powers'", "'x'", "True", "[]"),
    "regularisation": ("None", "1.0", *NUMBERS),
    "label_dimensions": ("1", "2", "5", "0", "-1", "2.5", "10**18", "10**30", "True"),
    "bandwidth": ("None", *NUMBERS),
    "n_reference": ("5", "1", "0", "10**18", "10**30", "2.5"),
    "reference": (
        "None", "points(5, 12)", "points(5, 3)", "zeros((0, 12))", "points(5, 12) * nan", "'x'", "5", "[[1]]",
    ),
    # the loss
    "x": TENSORS,
    "x2": TENSORS,
    "y": TENSOR_LABELS,
    "y2": TENSOR_LABELS,
    "chunk": ("None", "64", "128", "1", "0", "64.0", "True", "int64(64)", "10**30", "Decimal(64)"),
    "dtype": ("None", "'f4'", "int", "'x'", "object"),
    "copy": ("None", "True", "False"),
    "first": ("0", "1", "5"),
    "NoiseFloor.distances": (),
    "what": ("'this'",),
    "point_shape": ("(2,)", "(2, 1)", "(4, 4)"),
    "Convolution.check_points.name": ("'a'",),
}
