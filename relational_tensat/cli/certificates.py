"""The command ``check``: a result against its certificate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.parser import Parser

if TYPE_CHECKING:
    import argparse

    from relational_tensat.certificate.check import CertificateCheck
    from relational_tensat.certificate.proof_file import Certificate


def check_arguments(parser: Parser) -> None:
    """Declare the flags of ``check``."""
    parser.add_argument("original", type=Path, metavar="ORIGINAL", help="the model")
    parser.add_argument("result", type=Path, metavar="RESULT", help="what it became")
    parser.add_argument("certificate", type=Path, metavar="CERTIFICATE", help="how")
    parser.add_argument(
        "--own-rules", action="store_true",
        help="take steps of rules that do not ship, if both sides compute the same numbers",
    )  # fmt: skip


def check(args: argparse.Namespace) -> int:
    """Replay a certificate; end with exit code 4 at the first thing that is not as it says."""
    from relational_tensat.certificate.check import check_certificate
    from relational_tensat.certificate.proof_file import read_certificate

    stated = read_certificate(args.certificate)
    found = check_certificate(stated, args.original, args.result, allow_own_rules=args.own_rules)
    if args.quiet:
        return 0
    figures = stated.figures
    how = f" [{figures.low:.3f}, {figures.high:.3f}]" if figures.basis == "measured" else ""
    sys.stdout.write(
        f"{escaped(str(args.result))}: computes what {escaped(str(args.original))} computes\n"
        f"steps: {found.steps} replayed{_sizes(stated)}, by {len(stated.rules)} rules{_trust(found)}\n"
        f"file: {found.same} values as the last graph has them, {found.compared} written otherwise and "
        f"compared\n"
        f"numbers: largest relative error {found.float64:.1e} in float64{_runtime(found)}\n"
        f"stated: {figures.speedup:.3f} times as fast{how}, {figures.basis}; at most {figures.gap:.2%} "
        f"from the optimum of an e-graph of {figures.e_nodes:,} e-nodes; prices by "
        f"{escaped(figures.profile)}\n"
    )
    return 0


def _sizes(stated: Certificate) -> str:
    """Return at which sizes of dynamic dimensions all of it holds."""
    if len(stated.sizes) > 1:
        return f" at {len(stated.sizes)} sizes"
    dims = stated.sizes[0].dims.items()
    return f" at {', '.join(f'{escaped(name)}={size}' for name, size in dims)} only" if dims else ""


def _trust(found: CertificateCheck) -> str:
    if not found.by_numbers:
        return ", all of them ship and are sound"
    kinds = ", ".join(sorted(set(found.by_numbers.values())))
    return f"; {len(found.by_numbers)} of them ({kinds}) by their numbers alone"


def _runtime(found: CertificateCheck) -> str:
    if found.runtime is None:
        return "; the files were not run"
    return f", {found.runtime:.1e} in onnxruntime (at most {found.tolerance:g})"
