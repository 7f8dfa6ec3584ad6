"""A kernel of Jupyter's, to run cells in."""

from __future__ import annotations

import sys
from typing import Any


def in_kernel(cells: list[str], folder: str) -> list[str]:
    """What a kernel for this Python says to cells, one after the other."""
    from jupyter_client.kernelspec import KernelSpec  # here, as they are not everywhere
    from jupyter_client.manager import KernelManager

    manager = KernelManager()
    launched = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=launched, display_name="this Python", language="python")  # none is installed
    manager.start_kernel(cwd=folder)
    client = manager.client()
    client.start_channels()
    outputs = [""] * len(cells)
    try:
        client.wait_for_ready(timeout=60)
        for n, cell in enumerate(cells):
            said: list[Any] = []
            client.execute_interactive(cell, output_hook=said.append, timeout=60)
            outputs[n] = "".join(str(message["content"]) for message in said)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return outputs
