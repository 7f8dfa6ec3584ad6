"""A progress bar that shows nothing: it wraps an iterable, as the library's does."""


class _Widget:
    def __init__(self, *args, **kwargs):
        self.args = args


Percentage = Bar = ETA = FileTransferSpeed = RotatingMarker = Timer = _Widget


class ProgressBar:
    def __init__(self, *args, **kwargs):
        self.seen = 0

    def __call__(self, iterable):
        self.iterable = iter(iterable)
        return self

    def __iter__(self):
        return self

    def __next__(self):
        value = next(self.iterable)
        self.seen += 1
        return value
