"""The error function for float64 arrays (NumPy has none, and math.erf takes one number)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rational approximations of Cephes (S. Moshier, ndtr.c), highest power first, near 1e-16 relative:
# erf(x) = x T(x^2) / U(x^2) for |x| <= 1, erf(x) = 1 - exp(-x^2) P(x) / Q(x) above.
_T = (9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
      7.00332514112805075473e3, 5.55923013010394962768e4)  # fmt: skip
_U = (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
      2.26290000613890934246e4, 4.92673942608635921086e4)  # fmt: skip
_P = (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
      4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
      9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2)  # fmt: skip
_Q = (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
      9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
      1.65666309194161350182e3, 5.57535340817727675546e2)  # fmt: skip
_ONE_FROM = 6.0  # 1 - erf(6) < 2^-53


def erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the error function of every element, to about 1e-15 relative."""
    size = np.minimum(np.abs(x), _ONE_FROM)
    square = size * size
    near = size * np.polyval(_T, square) / np.polyval(_U, square)
    far = 1.0 - np.exp(-square) * np.polyval(_P, size) / np.polyval(_Q, size)
    return np.copysign(np.where(size <= 1.0, near, far), x)
