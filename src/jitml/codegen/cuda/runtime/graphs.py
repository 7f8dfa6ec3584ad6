"""Graphs of the driver: launches, whose parameters may be changed afterwards, what else was asked for, and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jitml.codegen.cuda.runtime.gpu import CudaFunction, Gpu


class GraphRecording:
    """A graph that is being made. The stream's holder makes it, and ends or drops it.

    Launches are nodes of their own, by which they are found again. The rest, libraries' work too, is asked of the stream, which
    is captured; it becomes a node when the next launch comes, or the end. What depends on a condition is a graph of its own in
    that of a node.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._launches: list[tuple[CudaFunction, Any, Any]] = []  # functions, nodes, and these nodes' parameters
        self._last: list[Any] = []  # the node that the next one depends on
        self._whole = self._graph = gpu.calls(gpu.driver.cuGraphCreate, 0)  # all of it, and what is added to
        self._capture()

    def launch(self, function: CudaFunction, blocks: int, threads: int, shared: int, place: int) -> None:
        """
        Args:
            place: of an array of pointers to the parameters, which stays there.
        """
        gpu = self._gpu
        self._add_captured()
        parameters = gpu.driver.CUDA_KERNEL_NODE_PARAMS()
        parameters.func, parameters.sharedMemBytes, parameters.kernelParams = function.handle, shared, place
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = blocks, 1, 1
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = threads, 1, 1
        node = gpu.calls(gpu.driver.cuGraphAddKernelNode, self._graph, self._last, len(self._last), parameters)
        if self._graph is self._whole:
            self._launches.append((function, node, parameters))
        self._last = [node]
        self._capture()

    def new_condition(self) -> int:
        gpu = self._gpu
        return int(gpu.calls(gpu.driver.cuGraphConditionalHandleCreate, self._whole, gpu.context, 0, 0))

    def conditional(self, kind: Literal["if", "while"], condition: int, work: Callable[[], None]) -> None:
        """
        Args:
            condition: the driver's handle of it.
        """
        gpu, driver = self._gpu, self._gpu.driver
        self._add_captured()
        parameters = driver.CUgraphNodeParams()
        parameters.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        inside = parameters.conditional
        inside.handle, inside.size, inside.ctx = driver.CUgraphConditionalHandle(condition), 1, gpu.context
        inside.type = getattr(driver.CUgraphConditionalNodeType, f"CU_GRAPH_COND_TYPE_{kind.upper()}")
        add = getattr(driver, "cuGraphAddNode_v2", driver.cuGraphAddNode)  # CUDA 12 has both, 13 the second one under this name
        node = gpu.calls(add, self._graph, self._last, None, len(self._last), parameters)
        around, self._graph, self._last = self._graph, inside.phGraph_out[0], []
        self._capture()
        work()
        self._add_captured()
        self._graph, self._last = around, [node]
        self._capture()

    def end(self) -> CudaGraph:
        self._add_captured()
        return CudaGraph(self._gpu, self._whole, self._launches)

    def drop(self) -> None:
        """Forget it, where something has failed."""
        driver = self._gpu.driver
        status, part = driver.cuStreamEndCapture(self._gpu.handle)
        for graph in (self._whole, *(() if status else (part,))):
            driver.cuGraphDestroy(graph)

    def _capture(self) -> None:
        # Relaxed: what other threads of other libraries do meanwhile neither fails nor breaks this.
        driver = self._gpu.driver
        self._gpu.calls(driver.cuStreamBeginCapture, self._gpu.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)

    def _add_captured(self) -> None:
        driver, calls = self._gpu.driver, self._gpu.calls
        part = calls(driver.cuStreamEndCapture, self._gpu.handle)
        try:
            status, _, count = driver.cuGraphGetNodes(part)
            calls(lambda: (status,))
            if count:
                self._last = [calls(driver.cuGraphAddChildGraphNode, self._graph, self._last, len(self._last), part)]
        finally:
            calls(driver.cuGraphDestroy, part)


class CudaGraph:
    """A graph that can be replayed.

    Args:
        launches: functions, nodes, and these nodes' parameters.
    """

    def __init__(self, gpu: Gpu, graph: Any, launches: Sequence[tuple[CudaFunction, Any, Any]]) -> None:
        self._gpu, self._graph, self._launches = gpu, graph, launches
        self._executable = gpu.calls(gpu.driver.cuGraphInstantiate, graph, 0)

    def replay(self, changes: Sequence[tuple[int, Sequence[int]]] = ()) -> None:
        gpu, executable = self._gpu, self._executable
        change, calls = gpu.driver.cuGraphExecKernelNodeSetParams, gpu.calls
        with gpu.lock, gpu.turn:
            for n, addresses in changes:
                function, node, parameters = self._launches[n]
                function.parameters(addresses)  # written to where the node's parameters are read from
                calls(change, executable, node, parameters)
            calls(gpu.driver.cuGraphLaunch, executable, gpu.handle)

    def __del__(self) -> None:
        later, driver = self._gpu.later, self._gpu.driver
        if hasattr(self, "_executable"):
            later(driver.cuGraphExecDestroy, self._executable)
        later(driver.cuGraphDestroy, self._graph)
