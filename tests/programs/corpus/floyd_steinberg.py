def floyd_steinberg(image):
    """Dither to black and white; the error of each pixel goes to neighbours not yet visited (Floyd and Steinberg 1976)."""
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = 1.0 if old > 0.5 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < w:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    image[y + 1, x + 1] += error * 1 / 16


def make(size, rng):
    h, w = {"small": (6, 7), "large": (160, 200)}[size]
    return (rng.integers(0, 256, (h, w)) / 256.0,)
