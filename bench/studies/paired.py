"""What the scripts beside it share: plays of `lagometer run`, and lanes set beside each
other seed by seed. `LAGOMETER` names the program, `lagometer` unless set."""

import json
import math
import os
import statistics
import subprocess

# The 97.5th percentile of Student's t by degrees of freedom: one less than the seeds.
STUDENT = {4: 2.776, 9: 2.262, 14: 2.145, 19: 2.093}


def play(arguments, document):
    """The document of `lagometer run` with these arguments, kept in the file `document`.
    One that is there is not played again."""
    if not document.exists():
        part = document.with_suffix(".part")
        program = os.environ.get("LAGOMETER", "lagometer")
        command = [program, "run", *map(str, arguments), "--no-html", "--json", str(part)]
        output = subprocess.run(command, capture_output=True, text=True, check=False)
        # Exit code 1: a budget is missed, which is no matter here.
        if output.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: exit code {output.returncode}\n{output.stderr}")
        part.rename(document)
    return json.loads(document.read_text())


def experiment(name, network, for_s, lanes):
    """An experiment as TOML: 500 B every 50 ms each way over a network, with a lane for each
    pair of a transport and its settings."""
    lines = [
        f'name = "{name}"',
        f'summary = "{name}"',
        f'network = "{network}"',
        f'for = "{for_s} s"',
        "[workload.paced-echo]",
        'size = "500 B"',
        'interval = "50 ms"',
    ]
    for nth, (transport, settings) in enumerate(lanes):
        # What JSON writes of strings and truth is TOML, too.
        pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
        lines += ["[[lane]]", f'name = "lane-{nth}"', f'transport = "{transport}"']
        lines.append(f"settings = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def half_width(values):
    """Half of the interval that holds the mean in 95 % of such runs."""
    return STUDENT[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def difference(of, than, written="{:.2f}"):
    """The mean difference seed by seed, with half its interval; `=` where no seed differs."""
    pairs = [one - other for one, other in zip(of, than, strict=True)]
    if not any(pairs):
        return "="
    mean = statistics.fmean(pairs)
    sign = "−" if mean < 0 else "+"
    return f"{sign}{written.format(abs(mean))} ± {written.format(half_width(pairs))}"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
