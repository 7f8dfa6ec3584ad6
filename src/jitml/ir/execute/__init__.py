"""Running a graph by NumPy: as a Python function, in place where it may, watched for NaN."""
