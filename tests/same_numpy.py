"""Makes NumPy give the same bits on every x86 CPU. To be imported before NumPy.

OpenBLAS chooses its kernels by the CPU. With AVX-512 its dot product uses fused multiply-adds, so that np.linalg.norm,
and with it what some of Gymnasium's environments report, differs in the last bit from other CPUs. Tests that compare
bits need one answer: that of the kernels for AVX2, which nearly all x86 CPUs can run.
"""

import os
from pathlib import Path

VARIABLE = "OPENBLAS_CORETYPE"


def _has_avx2() -> bool:
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


if _has_avx2():
    os.environ.setdefault(VARIABLE, "Haswell")
