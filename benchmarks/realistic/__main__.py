"""Write a realistic fleet to a file that `plan` reads.

python -m benchmarks.realistic company --seed 1 --variant day+region-loss --out fleets/company.yaml
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.realistic.fleet import write_file
from benchmarks.realistic.sizes import PLAIN, SIZES, Switch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("size", choices=tuple(SIZES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", default=PLAIN, help=f"{PLAIN}, or joined by +: {', '.join(Switch)}")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    try:
        print(write_file(arguments.out, arguments.size, arguments.seed, arguments.variant))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
