"""Keeps and prints the record of tests that needed a second try.

flaky.py RECORD [PROGRAM TEST]...: with tests, adds them to the record, one JSON
array; without, prints how often each was there and when last.
"""

import datetime
import json
import pathlib
import sys


def main() -> None:
    path = pathlib.Path(sys.argv[1])
    kept = json.loads(path.read_text()) if path.exists() else []
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    for each in sys.argv[2:]:
        program, _, test = each.partition(" ")
        kept.append({"at": now, "program": program, "test": test})
    if len(sys.argv) > 2:
        path.write_text(json.dumps(kept, indent=1) + "\n")
        return
    times: dict[tuple[str, str], list[str]] = {}
    for each in kept:
        times.setdefault((each["program"], each["test"]), []).append(each["at"])
    for (program, test), at in sorted(times.items()):
        print(f"{program} {test}: {len(at)} times, last {max(at)}")


if __name__ == "__main__":
    main()
