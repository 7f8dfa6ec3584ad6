"""Every primitive, by family; `ops.exp`, `ops.reduce_sum` and so on."""

from jitml.ir.ops.calls import *  # noqa: F403
from jitml.ir.ops.complex import *  # noqa: F403
from jitml.ir.ops.contraction import *  # noqa: F403
from jitml.ir.ops.dynamic import *  # noqa: F403
from jitml.ir.ops.fft import *  # noqa: F403
from jitml.ir.ops.host import *  # noqa: F403
from jitml.ir.ops.index_maps import *  # noqa: F403
from jitml.ir.ops.indexed import *  # noqa: F403
from jitml.ir.ops.linalg import *  # noqa: F403
from jitml.ir.ops.pointwise import *  # noqa: F403
from jitml.ir.ops.random import *  # noqa: F403
from jitml.ir.ops.reductions import *  # noqa: F403
from jitml.ir.ops.regions import *  # noqa: F403
