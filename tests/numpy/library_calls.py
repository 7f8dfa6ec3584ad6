"""Calls of SciPy's and scikit-learn's functions and objects, as people write them: `row(f)`, of a vector, a matrix and others.

Each takes arrays by the names of its parameters:
    x: 8 numbers; p: 8 positive ones; a, b: matrices of 4 by 4, a well away from singular; s: a symmetric one, positive definite;
    z: points, 6 by 2; m: an image, 6 by 7; k: whole numbers, 8 of them.
"""

# mypy: ignore-errors
# ruff: noqa: PLW0108  # a function's parameters say what it is given

from __future__ import annotations

import numpy as np
import scipy.cluster.hierarchy
import scipy.cluster.vq
import scipy.fft
import scipy.fftpack
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.distance
import scipy.spatial.transform
import scipy.special
import scipy.stats
from scipy import linalg, ndimage, signal

ROWS = {}


def row(name, f):
    assert name not in ROWS
    ROWS[name] = f


# scipy.linalg
row("linalg.inv", lambda a: linalg.inv(a))
row("linalg.solve", lambda a, x: linalg.solve(a, x[:4]))
row("linalg.solve symmetric", lambda s, x: linalg.solve(s, x[:4], assume_a="pos"))
row("linalg.solve_triangular", lambda a, x: linalg.solve_triangular(a, x[:4], lower=True))
row("linalg.solve_banded", lambda a, x: linalg.solve_banded((1, 1), a[:3] + 3 * (np.arange(3) == 1)[:, None], x[:4]))
row("linalg.solve_toeplitz", lambda p, x: linalg.solve_toeplitz(p[:4] + 9 * (np.arange(4) == 0), x[:4]))
row("linalg.det", lambda a: linalg.det(a))
row("linalg.lu", lambda a: linalg.lu(a))
row("linalg.lu_factor", lambda a, x: linalg.lu_solve(linalg.lu_factor(a), x[:4]))
row("linalg.cholesky", lambda s: linalg.cholesky(s, lower=True))
row("linalg.cho_factor", lambda s, x: linalg.cho_solve(linalg.cho_factor(s), x[:4]))
row("linalg.qr", lambda a: linalg.qr(a))
row("linalg.qr economic", lambda z: linalg.qr(z, mode="economic", pivoting=True))
row("linalg.svd", lambda z: linalg.svd(z, full_matrices=False))
row("linalg.svdvals", lambda a: linalg.svdvals(a))
row("linalg.eigh", lambda s: linalg.eigh(s))
row("linalg.eigh generalized", lambda s: linalg.eigvalsh(s, np.diag([1.0, 2, 3, 4])))
row("linalg.eigvals", lambda a: linalg.eigvals(a))
row("linalg.eigvalsh", lambda s: linalg.eigvalsh(s))
row("linalg.schur", lambda s: linalg.schur(s))
row("linalg.hessenberg", lambda a: linalg.hessenberg(a))
row("linalg.expm", lambda a: linalg.expm(a / 4))
row("linalg.cosm", lambda s: linalg.cosm(s / 9))
row("linalg.sqrtm", lambda s: linalg.sqrtm(s))
row("linalg.pinv", lambda z: linalg.pinv(z))
row("linalg.lstsq", lambda z, x: linalg.lstsq(z, x[:6])[0])
row("linalg.null_space", lambda z: linalg.null_space(z.T).shape)
row("linalg.norm", lambda a: linalg.norm(a) + linalg.norm(a, 1))
row("linalg.toeplitz", lambda x: linalg.toeplitz(x[:3]))
row("linalg.block_diag", lambda a, b: linalg.block_diag(a, b))
row("linalg.solve_sylvester", lambda a, s, b: linalg.solve_sylvester(s, s, b))
row("linalg.solve_continuous_lyapunov", lambda s, b: linalg.solve_continuous_lyapunov(s, b))
row("linalg.polar", lambda a: linalg.polar(a))
row("linalg.blas", lambda x: linalg.blas.ddot(x, x))
row("linalg.inv in a loop", lambda a: sum(linalg.inv(a + i * np.eye(4))[0, 0] for i in range(3)))
# scipy.fft, scipy.fftpack
row("fft.fft", lambda x: scipy.fft.fft(x))
row("fft.rfft", lambda x: scipy.fft.irfft(scipy.fft.rfft(x) * 2, 8))
row("fft.fft2", lambda m: scipy.fft.fft2(m).real)
row("fft.dct", lambda x: scipy.fft.dct(x, norm="ortho"))
row("fft.dctn", lambda m: scipy.fft.idctn(scipy.fft.dctn(m)))
row("fft.dst", lambda x: scipy.fft.dst(x, type=2))
row("fft.fftshift", lambda x: scipy.fft.fftshift(x))
row("fft.next_fast_len", lambda x: x * scipy.fft.next_fast_len(11))
row("fftpack.fft", lambda x: scipy.fftpack.fft(x))
row("fftpack.rfft", lambda x: scipy.fftpack.irfft(scipy.fftpack.rfft(x)))
row("fftpack.dct", lambda x: scipy.fftpack.idct(scipy.fftpack.dct(x, norm="ortho"), norm="ortho"))
row("fftpack.hilbert", lambda x: scipy.fftpack.hilbert(x))
row("fftpack.diff", lambda x: scipy.fftpack.diff(x))
# scipy.ndimage
row("ndimage.gaussian_filter", lambda m: ndimage.gaussian_filter(m, 1.2))
row("ndimage.gaussian_filter1d", lambda x: ndimage.gaussian_filter1d(x, 2))
row("ndimage.uniform_filter", lambda m: ndimage.uniform_filter(m, size=3, mode="wrap"))
row("ndimage.median_filter", lambda m: ndimage.median_filter(m, size=3))
row("ndimage.maximum_filter", lambda m: ndimage.maximum_filter(m, size=(3, 1)))
row("ndimage.sobel", lambda m: np.hypot(ndimage.sobel(m, 0), ndimage.sobel(m, 1)))
row("ndimage.laplace", lambda m: ndimage.laplace(m))
row("ndimage.convolve", lambda m: ndimage.convolve(m, np.ones((3, 3)) / 9, mode="reflect"))
row("ndimage.correlate1d", lambda m, x: ndimage.correlate1d(m, x[:3]))
row("ndimage.zoom", lambda m: ndimage.zoom(m, 2, order=1))
row("ndimage.rotate", lambda m: ndimage.rotate(m, 30, reshape=False))
row("ndimage.shift", lambda m: ndimage.shift(m, (1, 0.5)))
row("ndimage.map_coordinates", lambda m, z: ndimage.map_coordinates(m, np.abs(z.T), order=1))
row("ndimage.affine_transform", lambda m: ndimage.affine_transform(m, np.array([[0.9, 0.1], [0.0, 1.1]])))
row("ndimage.label", lambda m: ndimage.label(m > 0))
row("ndimage.center_of_mass", lambda m: ndimage.center_of_mass(np.abs(m)))
row("ndimage.binary_dilation", lambda m: ndimage.binary_dilation(m > 1))
row("ndimage.distance_transform_edt", lambda m: ndimage.distance_transform_edt(m > -1))
row("ndimage.sum_labels", lambda m: ndimage.sum_labels(m, (m > 0).astype(int), index=[0, 1]))
# scipy.signal
row("signal.convolve", lambda x, p: signal.convolve(x, p[:3], mode="same"))
row("signal.fftconvolve", lambda x, p: signal.fftconvolve(x, p))
row("signal.convolve2d", lambda m: signal.convolve2d(m, np.ones((2, 2)), mode="same", boundary="symm"))
row("signal.correlate", lambda x, p: signal.correlate(x, p, "valid"))
row("signal.lfilter", lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.3], x))
row("signal.filtfilt", lambda m: signal.filtfilt(*signal.butter(1, 0.3), m.ravel()))
row("signal.sosfilt", lambda x: signal.sosfilt(signal.butter(2, 0.2, output="sos"), x))
row("signal.savgol_filter", lambda x: signal.savgol_filter(x, 5, 2))
row("signal.medfilt", lambda x: signal.medfilt(x, 3))
row("signal.detrend", lambda x: signal.detrend(x))
row("signal.hilbert", lambda x: np.abs(signal.hilbert(x)))
row("signal.resample", lambda x: signal.resample(x, 5))
row("signal.decimate", lambda m: signal.decimate(m.ravel(), 2))
row("signal.welch", lambda m: signal.welch(m.ravel(), nperseg=16))
row("signal.periodogram", lambda x: signal.periodogram(x, fs=2.0)[1])
row("signal.spectrogram", lambda m: signal.spectrogram(m.ravel(), nperseg=8)[2])
row("signal.find_peaks", lambda m: signal.find_peaks(np.sin(np.arange(40) / 3) + m.sum() * 1e-3)[0][:2])
row("signal.freqz", lambda x: signal.freqz(x[:3], worN=4)[1])
row("signal.windows", lambda x: x * signal.get_window("hann", 8))
# scipy.spatial
row("spatial.distance.cdist", lambda z: scipy.spatial.distance.cdist(z, z[:2], "cityblock"))
row("spatial.distance.pdist", lambda z: scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(z)))
row("spatial.distance.euclidean", lambda x, p: scipy.spatial.distance.euclidean(x, p))
row("spatial.distance.cosine", lambda x, p: scipy.spatial.distance.cosine(x, p))
row("spatial.cKDTree", lambda z: scipy.spatial.cKDTree(z).query(z[:3] + 0.1, k=2))
row("spatial.ConvexHull", lambda z: scipy.spatial.ConvexHull(z).volume)
row("spatial.transform.Rotation", lambda x: scipy.spatial.transform.Rotation.from_rotvec(x[:3]).as_matrix())
row("spatial.transform.Rotation.apply", lambda x: scipy.spatial.transform.Rotation.from_euler("xyz", x[:3]).apply(x[3:6]))
row("spatial.procrustes", lambda z: scipy.spatial.procrustes(z, z + np.arange(6)[:, None])[2])
# scipy.integrate
row("integrate.trapezoid", lambda x: scipy.integrate.trapezoid(x, dx=0.1))
row("integrate.simpson", lambda x: scipy.integrate.simpson(x, dx=0.1))
row("integrate.cumulative_trapezoid", lambda x: scipy.integrate.cumulative_trapezoid(x, initial=0))
row("integrate.quad", lambda x: scipy.integrate.quad(lambda t: t * t + 1.0, 0.0, 2.0)[0] * x)
row("integrate.odeint", lambda x: scipy.integrate.odeint(lambda y, t: -y, x[:2], np.linspace(0, 1, 4)))
row("integrate.solve_ivp", lambda x: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x[:2], t_eval=[0.5, 1.0]).y)
# scipy.optimize
row("optimize.minimize", lambda x: scipy.optimize.minimize(lambda q: ((q - 1) ** 2).sum(), x[:2]).x.round(3))
row("optimize.root_scalar", lambda p: scipy.optimize.brentq(lambda t: t * t - 2, 0.0, 3.0) + p[0])
row("optimize.nnls", lambda z, p: scipy.optimize.nnls(np.abs(z), p[:6])[0])
row("optimize.lsq_linear", lambda z, p: scipy.optimize.lsq_linear(z, p[:6]).x)
row("optimize.linear_sum_assignment", lambda a: scipy.optimize.linear_sum_assignment(a))
row("optimize.linprog", lambda p: scipy.optimize.linprog(p[:2], bounds=[(1, 2), (0, 3)]).fun)
row("optimize.curve_fit", lambda x, p: scipy.optimize.curve_fit(lambda t, c, d: c * t + d, p, x)[0])
# scipy.stats
row("stats.zscore", lambda x: scipy.stats.zscore(x))
row("stats.pearsonr", lambda x, p: scipy.stats.pearsonr(x, p).statistic)
row("stats.spearmanr", lambda x, p: scipy.stats.spearmanr(x, p)[0])
row("stats.linregress", lambda x, p: scipy.stats.linregress(p, x).slope)
row("stats.ttest_ind", lambda x, p: scipy.stats.ttest_ind(x, p).pvalue)
row("stats.skew", lambda x: scipy.stats.skew(x) + scipy.stats.kurtosis(x))
row("stats.rankdata", lambda x: scipy.stats.rankdata(x))
row("stats.norm.pdf", lambda x: scipy.stats.norm.pdf(x, 0.5, 2.0))
row("stats.norm.cdf", lambda x: scipy.stats.norm(loc=0.1).cdf(x))
row("stats.t.ppf", lambda p: scipy.stats.t.ppf(p / (1 + p), 4))
row("stats.gaussian_kde", lambda x: scipy.stats.gaussian_kde(x)(x[:3]))
row("stats.mode", lambda k: scipy.stats.mode(k).mode)
row("stats.trim_mean", lambda x: scipy.stats.trim_mean(x, 0.2))
row("stats.entropy", lambda p: scipy.stats.entropy(p))
row("stats.binned_statistic", lambda x, p: scipy.stats.binned_statistic(p, x, bins=2, range=(0, 9)).statistic)
row("stats.multivariate_normal", lambda z: scipy.stats.multivariate_normal.pdf(z, mean=[0, 0]))
# scipy.sparse
row("sparse.linalg.spsolve", lambda s, x: scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(s), x[:4]))
row("sparse.linalg.cg", lambda s, x: scipy.sparse.linalg.cg(s, x[:4], rtol=1e-12)[0].round(5))
row("sparse.linalg.eigsh", lambda s: scipy.sparse.linalg.eigsh(s, k=2, v0=np.ones(4))[0])
row("sparse.linalg.expm_multiply", lambda a, x: scipy.sparse.linalg.expm_multiply(a, x[:4]))
row("sparse.csgraph.shortest_path", lambda s: scipy.sparse.csgraph.shortest_path(np.abs(s)))
row("sparse.diags", lambda x: scipy.sparse.diags([x, x[1:]], [0, 1]).toarray())
# scipy.interpolate
row("interpolate.interp1d", lambda x: scipy.interpolate.interp1d(np.arange(8.0), x)(np.array([0.5, 3.2])))
row("interpolate.CubicSpline", lambda x: scipy.interpolate.CubicSpline(np.arange(8), x)(2.5, 1))
row("interpolate.PchipInterpolator", lambda x: scipy.interpolate.PchipInterpolator(np.arange(8), x)([1.5]))
row("interpolate.splrep", lambda x: scipy.interpolate.splev(2.2, scipy.interpolate.splrep(np.arange(8), x)))
row("interpolate.griddata", lambda z, x: scipy.interpolate.griddata(z, x[:6], z[:2] * 0.9, method="nearest"))
row(
    "interpolate.RegularGridInterpolator",
    lambda m: scipy.interpolate.RegularGridInterpolator((np.arange(6), np.arange(7)), m)([[1.5, 2]]),
)
row("interpolate.RBFInterpolator", lambda z, x: scipy.interpolate.RBFInterpolator(z, x[:6])(z[:2] + 0.1))
# scipy.special
row("special.erf", lambda x: scipy.special.erf(x))
row("special.gammaln", lambda p: scipy.special.gammaln(p))
row("special.logsumexp", lambda x: scipy.special.logsumexp(x))
row("special.softmax", lambda m: scipy.special.softmax(m, axis=1))
row("special.jv", lambda p: scipy.special.jv(1, p))
row("special.comb", lambda k: scipy.special.comb(k + 3, 2))
row("special.roots_legendre", lambda x: x[:3] * scipy.special.roots_legendre(3)[0])
# scipy.cluster
row("cluster.vq.kmeans2", lambda z: scipy.cluster.vq.vq(z, z[:2])[0])
row("cluster.vq.whiten", lambda z: scipy.cluster.vq.whiten(z))
row("cluster.hierarchy.linkage", lambda z: scipy.cluster.hierarchy.linkage(z, "ward"))
row("cluster.hierarchy.fcluster", lambda z: scipy.cluster.hierarchy.fcluster(scipy.cluster.hierarchy.linkage(z), 2, "maxclust"))
# scikit-learn


def estimators():
    from sklearn import cluster, decomposition, linear_model, metrics, neighbors, preprocessing, tree

    row("sklearn.StandardScaler", lambda z: preprocessing.StandardScaler().fit_transform(z))
    row("sklearn.MinMaxScaler", lambda z: preprocessing.MinMaxScaler().fit(z).transform(z[:2]))
    row("sklearn.scale", lambda z: preprocessing.scale(z))
    row("sklearn.normalize", lambda z: preprocessing.normalize(z))
    row("sklearn.LinearRegression", lambda z, x: linear_model.LinearRegression().fit(z, x[:6]).predict(z))
    row("sklearn.Ridge", lambda z, x: linear_model.Ridge(alpha=0.5).fit(z, x[:6]).coef_)
    row("sklearn.PCA", lambda z: np.abs(decomposition.PCA(1).fit_transform(z)))
    row("sklearn.KMeans", lambda z: cluster.KMeans(2, init=np.array([[0.0, 0], [1, 1]]), n_init=1).fit(z).inertia_)
    row("sklearn.NearestNeighbors", lambda z: neighbors.NearestNeighbors(n_neighbors=2).fit(z).kneighbors(z)[0])
    row("sklearn.DecisionTreeRegressor", lambda z, x: tree.DecisionTreeRegressor(random_state=0).fit(z, x[:6]).predict(z))
    row("sklearn.mean_squared_error", lambda x, p: metrics.mean_squared_error(x, p))
    row("sklearn.r2_score", lambda x, p: metrics.r2_score(p, x))
    row("sklearn.pairwise_distances", lambda z: metrics.pairwise_distances(z))


estimators()

# Functions that write into what they are given, or return it, and objects that change.


def program(f):
    row(f.__name__.replace("_", " "), f)


@program
def overwritten_matrix(a, x):
    lu = linalg.lu_factor(np.asfortranarray(a), overwrite_a=True)
    return linalg.lu_solve(lu, x[:4] * 1.0, overwrite_b=True)


@program
def overwritten_argument(a, x):
    return linalg.solve(a, x[:4], overwrite_a=True, overwrite_b=True)


@program
def overwritten_and_read(a):
    c = np.asfortranarray(a)
    lu, _ = linalg.lu_factor(c, overwrite_a=True)
    return c + lu


@program
def output_of_a_filter(m):
    out = np.zeros(m.shape)
    ndimage.gaussian_filter(m, 1.0, output=out)
    return out


@program
def output_in_place(x):
    r = ndimage.uniform_filter1d(x, 3, output=x)
    r[0] = 9.0
    return x + r


@program
def output_into_rows(x):
    out = np.zeros((4, 8))
    for i in range(4):
        ndimage.uniform_filter1d(x * i, 3, output=out[i])
    return out


@program
def output_of_another_type(x):
    return ndimage.uniform_filter1d(x, 3, output=np.float32)


@program
def written_by_blas(x):
    y = x * 1.0
    r = linalg.blas.daxpy(x, y, a=2.0)
    linalg.blas.dscal(0.5, y)
    return r * 1.0, y


@program
def argument_that_is_returned(x):
    return signal.lsim(signal.StateSpace([[0.0, 1], [-1, -1]], [[0.0], [1]], [[1.0, 0]], [[0.0]]), x, np.arange(8.0))


@program
def written_under_a_condition(a, x):
    c = np.asfortranarray(a)
    if abs(x[0]) > 0:
        linalg.inv(c, overwrite_a=True)
    return c


@program
def fitted_without_looking_at_the_result(z, x):
    from sklearn.linear_model import Ridge

    model = Ridge()
    model.set_params(alpha=3.0)
    model.fit(z, x[:6])
    return model.coef_, model.predict(z)


@program
def fitted_part_by_part(z):
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for i in range(3):
        scaler.partial_fit(z + i)
    return scaler.mean_, scaler.n_samples_seen_


@program
def pipeline(z, x):
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LinearRegression())
    model.fit(z, x[:6])
    return model.predict(z[:2])


@program
def called_in_a_while(x):
    n = 0
    while linalg.norm(x) > 1.0:
        x = x / 2
        n += 1
    return n
