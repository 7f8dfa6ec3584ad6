"""Objects of libraries: sparse matrices, interpolators, frozen distributions, polynomials, random generators, dates."""

from __future__ import annotations

from programs.drawn.scope import INEXACT
from programs.drawn.things.thing import Thing

_SPARSE = "import scipy.sparse\n"
_CURVES = "import scipy.interpolate\n"
_STATS = "import scipy.stats\n"
_LINE = "np.clip(np.nan_to_num($x.astype(float)), 0, 1)"

LIBRARY = (
    Thing(
        "sparse",
        ("scipy.sparse.eye(np.ravel($x).size, format='csr') * $k", "scipy.sparse.diags([float($k)] * np.ravel($x).size).tocsc()"),
        (
            "$o @ np.ravel($x)",
            "$o.nnz",
            "$o.shape[0]",
            "$o.toarray()",
            "$o.diagonal()",
            "$o.sum()",
            "($o * 2) @ np.ravel($x)",
            "$o.data",
            "$o[0, 0]",
        ),
        ("$o.data *= 2", "$o.data[0] = $n", "$o.setdiag($e)"),
        ("$o.data[:] = $k",),
        _SPARSE,
    ),
    Thing(
        "coo",
        ("scipy.sparse.coo_array(([$k, 1.0], ([0, 1], [1, 0])), shape=(2, 2))",),
        ("$o @ np.ones(2)", "$o.toarray()", "$o.T.toarray()", "$o.sum(axis=0)", "$o.tocsr()[0, 1]", "$o.data[0]"),
        ("$o.data[0] = $n",),
        ("$o.data[:] = $k", "$o.data[0] = $k"),
        _SPARSE,
    ),
    Thing(
        "interpolator",
        (
            "scipy.interpolate.interp1d([0, 1, 2], [0, $k, 1])",
            "scipy.interpolate.CubicSpline([0, 1, 2], [0, $k, 1])",
            "scipy.interpolate.PchipInterpolator([0, 1, 2], [0, $k, 9])",
        ),
        (f"$o({_LINE})", "$o(0.5)", "$o(1.0) * $x", "float($o(1))", "$o.x[1]"),
        (),
        (),
        _CURVES,
        INEXACT,
    ),
    Thing(
        "distribution",
        ("scipy.stats.norm($k, 1)", "scipy.stats.expon($k)"),
        ("$o.cdf(0.5)", f"$o.pdf({_LINE})", "$o.mean()", "$o.ppf(0.5)", "$o.args[0]", "$o.std()"),
        (),
        (),
        _STATS,
        INEXACT,
    ),
    Thing(
        "density",
        ("scipy.stats.norm($k, 1).cdf", "scipy.stats.norm(0, $k).pdf"),
        ("$o(0.5)", f"$o({_LINE})"),
        (),
        (),
        _STATS,
        INEXACT,
    ),
    Thing(
        "polynomial",
        ("np.polynomial.Polynomial([1, $k])", "np.polynomial.Polynomial([1, 0, $k])", "np.polynomial.Chebyshev([1, $k])"),
        ("$o($x)", "$o(2.0)", "$o.coef", "$o.deriv()(1.0)", "($o + 1)(2.0)", "($o * $o).coef", "$o.degree()", "len($o)"),
        ("$o.coef[0] = $n",),
        ("$o.coef[0] = $k", "$o.coef = np.array([$k, 1.0])"),
        "",
        INEXACT,
    ),
    Thing(
        "poly1d",
        ("np.poly1d([$k, 1])",),
        ("$o($x)", "$o(2.0)", "$o.c", "$o.deriv()(2.0)", "$o.order", "($o + 1)(1)", "$o[0]"),
        ("$o.coeffs[0] = $n",),
        ("$o.coeffs[:] = $k",),
        "",
        INEXACT,
    ),
    Thing(
        "fraction",
        ("fractions.Fraction($k, 3)", "decimal.Decimal($k)"),
        ("float($o)", "float($o * 2)", "int($o)", "float($o + 1) * $x", "$o"),
        (),
        (),
        "import decimal\nimport fractions\n",
    ),
    Thing(
        "tree",
        ("scipy.spatial.KDTree([[0.0, 1.0], [2.0, $k]])",),
        ("$o.query([2.0, 2.0])[1]", "$o.n", "$o.data[1, 1]", "$o.query([1.0, 3.0])[0]"),
        (),
        (),
        "import scipy.spatial\n",
        INEXACT,
    ),
    Thing(
        "rotation",
        ("scipy.spatial.transform.Rotation.from_euler('z', $k * 0.25)",),
        ("$o.as_matrix()", "$o.apply([1.0, 0.0, 0.0])", "$o.inv().as_matrix()"),
        (),
        (),
        "import scipy.spatial.transform\n",
        INEXACT,
    ),
)
