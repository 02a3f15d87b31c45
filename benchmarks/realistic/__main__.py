"""Write a realistic fleet to a file that `plan` reads.

    python -m benchmarks.realistic company --seed 1 --variant day+region-loss --out company.yaml [--prove]

With --prove it shows that the fleet has a plan, without the search that is measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.realistic.fleet import write_file
from benchmarks.realistic.sizes import PLAIN, SIZES, Switch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("size", choices=tuple(SIZES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", default=PLAIN, help=f"{PLAIN}, or joined by +: {', '.join(Switch)}")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--prove", action="store_true", help="show that the fleet has a plan")
    parser.add_argument(
        "--time-limit", type=float, default=120.0, help="of the proof, for each of two models [s]"
    )
    arguments = parser.parse_args()
    try:
        print(write_file(arguments.out, arguments.size, arguments.seed, arguments.variant))
    except ValueError as error:
        parser.error(str(error))
    if arguments.prove:
        prove(arguments.out, arguments.time_limit)


def prove(path: Path, limit_s: float) -> None:
    """Print what shows that a fleet has a plan; exit with 1 where nothing was found in time."""
    # The planner is only needed here.
    from benchmarks.realistic.witness import find_witness  # noqa: PLC0415

    from fleetplan.scenarios.load import load_fleet  # noqa: PLC0415

    witness = find_witness(load_fleet(path), limit_s)
    if witness is None:
        sys.exit(f"no plan found within {limit_s:g} s for each of two models; there may be one")
    print(
        f"a verified plan of {witness.usd / 1e6:.3f} M USD after {witness.seconds:.1f} s, among "
        f"{witness.candidates} of {witness.of} configurations; nobody looked for a cheap one"
    )


if __name__ == "__main__":
    main()
