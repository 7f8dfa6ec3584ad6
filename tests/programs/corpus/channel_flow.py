import numpy as np


def channel_flow(u, v, p, dt, rho, nu, force, tolerance):
    """Flow driven through a periodic channel, until the total speed settles (Barba and Forsyth, step 12)."""
    ny, nx = u.shape
    dx = 2 / (nx - 1)
    dy = 2 / (ny - 1)
    change = 1.0
    count = 0
    while change > tolerance:
        un = u.copy()
        vn = v.copy()
        east, west = np.roll(un, -1, axis=1), np.roll(un, 1, axis=1)
        veast, vwest = np.roll(vn, -1, axis=1), np.roll(vn, 1, axis=1)
        b = np.zeros_like(u)
        b[1:-1] = rho * (
            ((east - west)[1:-1] / (2 * dx) + (vn[2:] - vn[:-2]) / (2 * dy)) / dt
            - ((east - west)[1:-1] / (2 * dx)) ** 2
            - ((vn[2:] - vn[:-2]) / (2 * dy)) ** 2
        )
        for _ in range(20):
            pn = p.copy()
            p[1:-1] = ((np.roll(pn, -1, axis=1) + np.roll(pn, 1, axis=1))[1:-1] * dy**2 + (pn[2:] + pn[:-2]) * dx**2) / (
                2 * (dx**2 + dy**2)
            ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1]
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        gradient = np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)
        u[1:-1] = (
            un[1:-1]
            - un[1:-1] * dt / dx * (un - west)[1:-1]
            - vn[1:-1] * dt / dy * (un[1:-1] - un[:-2])
            - dt / (2 * rho * dx) * gradient[1:-1]
            + nu * (dt / dx**2 * (east - 2 * un + west)[1:-1] + dt / dy**2 * (un[2:] - 2 * un[1:-1] + un[:-2]))
            + force * dt
        )
        v[1:-1] = (
            vn[1:-1]
            - un[1:-1] * dt / dx * (vn - vwest)[1:-1]
            - vn[1:-1] * dt / dy * (vn[1:-1] - vn[:-2])
            - dt / (2 * rho * dy) * (p[2:] - p[:-2])
            + nu * (dt / dx**2 * (veast - 2 * vn + vwest)[1:-1] + dt / dy**2 * (vn[2:] - 2 * vn[1:-1] + vn[:-2]))
        )
        u[0, :] = u[-1, :] = 0
        v[0, :] = v[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        count += 1
    return count


def make(size, rng):
    n, tolerance = {"small": (9, 0.05), "large": (81, 0.01)}[size]
    dt = {"small": 0.01, "large": 0.001}[size]
    return np.zeros((n, n)), np.zeros((n, n)), 1 + 0.01 * rng.random((n, n)), dt, 1.0, 0.1, 1.0, tolerance
