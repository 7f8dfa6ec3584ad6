"""The loops that a Numba user would write for products, gathers, scatters, scans, selections, bytes and complex numbers.

What Numba has as a function (`sort`, `quantile`, `linalg.solve`) is called.
"""

from __future__ import annotations

import numpy as np
from numba import prange


def convolution_layer(x, weights):
    batch, height, width, channels = x.shape
    outputs = weights.shape[3]
    out = np.empty((batch, height - 2, width - 2, outputs), np.float32)
    for b in prange(batch):
        for i in range(height - 2):
            for j in range(width - 2):
                total = np.zeros(outputs, np.float32)
                for k in range(3):
                    for l in range(3):
                        for c in range(channels):
                            for o in range(outputs):
                                total[o] += x[b, i + k, j + l, c] * weights[k, l, c, o]
                for o in range(outputs):
                    out[b, i, j, o] = max(total[o], np.float32(0))
    return out


def mahalanobis(x, mean, precision):
    n, m = x.shape
    out = np.empty(n)
    for i in prange(n):
        total = 0.0
        for j in range(m):
            inner = 0.0
            for k in range(m):
                inner += precision[j, k] * (x[i, k] - mean[k])
            total += (x[i, j] - mean[j]) * inner
        out[i] = np.sqrt(total)
    return out


def small_solves(a, b):
    out = np.empty_like(b)
    for n in prange(len(a)):
        out[n] = np.linalg.solve(a[n], b[n])
    return out


def bilinear_sample(image, y, x):
    out = np.empty_like(y)
    for n in prange(len(y)):
        i, j = int(np.floor(y[n])), int(np.floor(x[n]))
        a, b = y[n] - i, x[n] - j
        above = (1 - b) * image[i, j] + b * image[i, j + 1]
        below = (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
        out[n] = (1 - a) * above + a * below
    return out


def group_means(values, groups, count):
    total, members = np.zeros(count), np.zeros(count, np.int64)
    for i in range(len(values)):
        total[groups[i]] += values[i]
        members[groups[i]] += 1
    for g in range(count):
        total[g] /= max(members[g], 1)
    return total


def spring_forces(position, first, second):
    force = np.zeros_like(position)
    for n in range(len(first)):
        a, b = first[n], second[n]
        x, y, z = position[b, 0] - position[a, 0], position[b, 1] - position[a, 1], position[b, 2] - position[a, 2]
        length = np.sqrt(x * x + y * y + z * z) + 1e-9
        pull = (length - 1) / length
        force[a, 0] += pull * x
        force[a, 1] += pull * y
        force[a, 2] += pull * z
        force[b, 0] -= pull * x
        force[b, 1] -= pull * y
        force[b, 2] -= pull * z
    return force


def drawdown(prices):
    loss = np.empty_like(prices)
    top, worst = prices[0], 0.0
    for i in range(len(prices)):
        top = max(top, prices[i])
        loss[i] = 1 - prices[i] / top
        worst = max(worst, loss[i])
    return loss, worst


def streaks(won):
    out = np.empty(len(won), np.int64)
    run = 0
    for i in range(len(won)):
        run = run + 1 if won[i] else 0
        out[i] = run
    return out


def top_scores(scores):
    n, m = scores.shape
    values, best = np.empty((n, 10)), np.empty((n, 10), np.int64)
    for i in prange(n):
        held = 0
        for j in range(m):
            score = scores[i, j]
            if held == 10 and score <= values[i, 9]:
                continue
            k = min(held, 9)
            while k > 0 and values[i, k - 1] < score:
                values[i, k], best[i, k] = values[i, k - 1], best[i, k - 1]
                k -= 1
            values[i, k], best[i, k] = score, j
            held = min(held + 1, 10)
    return values, best


def interpolate_table(x, grid, values):
    out = np.empty_like(x)
    for i in prange(len(x)):
        k = min(max(np.searchsorted(grid, x[i]) - 1, 0), len(grid) - 2)
        t = (x[i] - grid[k]) / (grid[k + 1] - grid[k])
        out[i] = values[k] + t * (values[k + 1] - values[k])
    return out


def word_counts(words):
    ordered = np.sort(words)
    found, counts = np.empty_like(words), np.zeros(len(words), np.int64)
    n = 0
    for i in range(len(ordered)):
        if i and ordered[i] != ordered[i - 1]:
            n += 1
        found[n] = ordered[i]
        counts[n] += 1
    found, counts = found[: n + 1], counts[: n + 1]
    order = np.argsort(-counts, kind="mergesort")
    return found[order], counts[order]


def accuracy(logits, labels):
    right = 0
    for i in prange(len(labels)):
        best = 0
        for j in range(1, logits.shape[1]):
            if logits[i, j] > logits[i, best]:
                best = j
        right += best == labels[i]
    return right / len(labels)


def without_outliers(x):
    mean, limit = x.mean(), 3 * x.std()
    total, n = 0.0, 0
    for i in prange(len(x)):
        if abs(x[i] - mean) < limit:
            total += x[i]
            n += 1
    kept = total / n
    square = 0.0
    for i in prange(len(x)):
        if abs(x[i] - mean) < limit:
            square += (x[i] - kept) ** 2
    return kept, np.sqrt(square / n)


def winsorize(x):
    low, high = np.quantile(x, np.array([0.05, 0.95]))
    out = np.empty_like(x)
    for i in prange(len(x)):
        out[i] = min(max(x[i], low), high)
    return out


def equalize(picture):
    counts = np.zeros(256, np.int64)
    for i in range(picture.shape[0]):
        for j in range(picture.shape[1]):
            counts[picture[i, j]] += 1
    levels = np.cumsum(counts)
    table = (255 * levels // levels[-1]).astype(np.uint8)
    out = np.empty_like(picture)
    for i in prange(picture.shape[0]):
        for j in range(picture.shape[1]):
            out[i, j] = table[picture[i, j]]
    return out


def hamming_distances(codes, query):
    out = np.empty(len(codes), np.uint64)
    for i in prange(len(codes)):
        total = np.uint64(0)
        for j in range(codes.shape[1]):
            x = codes[i, j] ^ query[j]
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
        out[i] = total
    return out


def hash_buckets(keys, buckets):
    out = np.empty(len(keys), np.int32)
    for i in prange(len(keys)):
        z = keys[i] + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = (z ^ (z >> np.uint64(31))) % np.uint64(buckets)
    return out


def dates_of_days(days):
    years, months, dates = np.empty_like(days), np.empty_like(days), np.empty_like(days)
    for i in prange(len(days)):
        shifted = days[i] + 719468
        era = shifted // 146097
        day = shifted - era * 146097
        year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day = day - (365 * year + year // 4 - year // 100)
        month = (5 * day + 2) // 153
        dates[i] = day - (153 * month + 2) // 5 + 1
        months[i] = month + 3 if month < 10 else month - 9
        years[i] = year + era * 400 + (months[i] <= 2)
    return years, months, dates


def erode(picture):
    rows, columns = picture.shape[0] - 2, picture.shape[1] - 2
    out = np.empty((rows, columns), np.uint8)
    for i in prange(rows):
        for j in range(columns):
            least = picture[i, j]
            for k in range(3):
                for l in range(3):
                    least = min(least, picture[i + k, j + l])
            out[i, j] = least
    return out


def fm_demodulate(signal, rate):
    out = np.empty(len(signal) - 1, np.float32)
    factor = np.float32(rate / (2 * np.pi))
    for i in prange(len(out)):
        turn = signal[i + 1] * np.conj(signal[i])
        out[i] = np.arctan2(turn.imag, turn.real) * factor
    return out


def frequency_response(frequency, b, a):
    gain, phase = np.empty_like(frequency), np.empty_like(frequency)
    for i in prange(len(frequency)):
        z = np.exp(-1j * frequency[i])
        above, below = 0j, 0j
        for k in range(len(b)):
            above = above * z + b[k]
            below = below * z + a[k]
        h = above / (1 + z * below)
        gain[i], phase[i] = 20 * np.log10(np.abs(h)), np.angle(h)
    return gain, phase


def antenna_pattern(place, weight, angle):
    power = np.empty_like(angle)
    for i in prange(len(angle)):
        real = imag = 0.0
        for j in range(len(place)):
            phase = 2 * np.pi * place[j] * np.sin(angle[i])
            real += weight[j] * np.cos(phase)
            imag += weight[j] * np.sin(phase)
        power[i] = real * real + imag * imag
    return power
