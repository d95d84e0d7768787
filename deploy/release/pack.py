"""One archive of the program: pack.py TARGET PROGRAM DESCRIBED OUT

In it: the program, what DESCRIBED has (completions, manual pages), what the tree says
of itself, and `THIRD-PARTY.txt`, the licences of every package that is part of the
program for that target, read from the packages themselves. SOURCE_DATE_EPOCH is the
time of every file in it.
"""

import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile

LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# What lies beside licences and is none: programs that check them.
NO_TEXT = {".rs", ".py", ".sh", ".toml", ".json", ".yml", ".yaml", ".h", ".c"}
# The C library that is part of a program, by the end of its target's name: those of
# other systems are linked when it starts. The texts are Debian's, of `musl` and
# `mingw-w64-x86-64-dev`.
LINKED = {
    "-musl": ("musl", "MIT, https://musl.libc.org", "musl.txt"),
    "-windows-gnu": ("mingw-w64", "ZPL-2.1 and others, https://www.mingw-w64.org", "mingw-w64.txt"),
}
# No zip holds an earlier time.
FIRST_OF_ZIP = 315532800


def metadata(target):
    """What cargo knows of all packages, for this target."""
    asked = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)


def parts(known):
    """The packages that are in the program: what it imports, what that imports, and so on.

    Neither what only tests or build scripts import, nor what runs within the compiler.
    """
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    (program,) = (each for each in packages if packages[each]["name"] == "lagometer")
    found, waiting = set(), [program]
    while waiting:
        at = waiting.pop()
        kinds = {kind for product in packages[at]["targets"] for kind in product["kind"]}
        if at in found or "proc-macro" in kinds:
            continue
        found.add(at)
        for dependency in nodes[at]["deps"]:
            if any(how["kind"] is None for how in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    of_others = (packages[each] for each in found if packages[each]["source"])
    return sorted(of_others, key=lambda package: (package["name"], package["version"]))


def plain(text):
    """A text without what differs between two copies of it."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def of_source(package):
    """The licence at the head of a library's source, where that has the whole of it."""
    (library,) = (it["src_path"] for it in package["targets"] if "lib" in it["kind"])
    head = []
    for line in pathlib.Path(library).read_text(encoding="utf-8").splitlines():
        if not re.match(r"//(?![/!])", line):
            break
        head.append(line[2:].removeprefix(" "))
    whole = plain("\n".join(head))
    return whole if "Redistribution and use" in whole and "DAMAGE" in whole else None


def stand_in(package):
    """What is packed for a package without any text, and what is said of that."""
    at_head = of_source(package)
    if at_head:
        return at_head, "its source's head"
    terms = re.split(r" OR |/", package["license"])
    # The same for everybody: it names no holder.
    if "Apache-2.0" in terms:
        return plain(pathlib.Path("LICENSE-APACHE").read_text(encoding="utf-8")), "Apache-2.0 as published"
    # Our own differs in its holder alone.
    if "MIT" in terms and package["authors"]:
        text = plain(pathlib.Path("LICENSE-MIT").read_text(encoding="utf-8"))
        holders = "Copyright (c) " + ", ".join(package["authors"])
        text, named = re.subn(r"(?m)^Copyright .*$", lambda _: holders, text)
        assert named == 1, "LICENSE-MIT names one holder"
        return text, "MIT as published, and its authors"
    name = f"{package['name']} {package['version']}"
    sys.exit(f"release: {name} holds no text of {package['license']}: add it to deploy/release/pack.py")


def texts(package):
    """The texts of licences in a package, those of C libraries in it among them."""
    folder = pathlib.Path(package["manifest_path"]).parent
    found = []
    for path in sorted(folder.rglob("*")):
        within = path.relative_to(folder)
        is_one = LICENCE.match(path.name) or LICENCE.match(within.parts[0])
        if is_one and path.is_file() and path.suffix not in NO_TEXT:
            text = path.read_text(encoding="utf-8", errors="replace")
            found.append(plain(text))
    return found


def licences(target):
    """The whole of `THIRD-PARTY.txt`."""
    listed, of_text = [], {}
    for package in parts(metadata(target)):
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if not licence and not package["license_file"]:
            sys.exit(f"release: {name} says no licence: leave it out, or ask who made it")
        where = package["repository"] or f"https://crates.io/crates/{package['name']}"
        found, note = texts(package), ""
        if not found:
            text, what = stand_in(package)
            found, note = [text], f" (its package holds no text of it: {what})"
        listed.append(f"{name}: {licence or package['license_file']}{note}, {where}")
        for text in found:
            of_text.setdefault(text, []).append(name)
    for end, (name, terms, file) in LINKED.items():
        if target.endswith(end):
            listed.insert(0, f"{name}, the C library: {terms}")
            text = (pathlib.Path(__file__).parent / "licences" / file).read_text(encoding="utf-8")
            of_text.setdefault(plain(text), []).append(name)
    root = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True)
    standard = sorted(pathlib.Path(root.stdout.strip()).glob("share/doc/rust/COPYRIGHT-library*"))
    head = [
        f"What the program for {target} is made of beside its own code, and on which terms.",
        "Rust's standard library: MIT OR Apache-2.0, https://github.com/rust-lang/rust"
        + ("; what it is made of: rust-standard-library.html" if standard else ""),
        *listed,
    ]
    bodies = [f"{', '.join(names)}\n\n{text}" for text, names in of_text.items()]
    rule = "\n\n" + "=" * 80 + "\n\n"
    return rule.join(["\n".join(head), *bodies]) + "\n", standard


def tree(target, program, described):
    """Each file's place in the archive, its bytes, and whether it is a program."""
    yield program.name, program.read_bytes(), True
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
        yield name, pathlib.Path(name).read_bytes(), False
    for path in sorted(described.rglob("*")):
        if path.is_file():
            yield path.relative_to(described).as_posix(), path.read_bytes(), False
    text, standard = licences(target)
    yield "THIRD-PARTY.txt", text.encode(), False
    for path in standard:
        yield "rust-standard-library.html", path.read_bytes(), False


def main():
    """Packs one, as a zip for Windows and a tar.gz for all others."""
    target, program, described, out = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    known = metadata(target)["packages"]
    (version,) = (it["version"] for it in known if it["name"] == "lagometer" and not it["source"])
    name = f"lagometer-{version}-{target}"
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    files = sorted(tree(target, program, described))
    if "-windows-" in target:
        with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for at, content, _ in files:
                file = zipfile.ZipInfo(f"{name}/{at}", time.gmtime(max(epoch, FIRST_OF_ZIP))[:6])
                file.external_attr = 0o644 << 16
                file.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(file, content)
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for at, content, is_program in files:
            file = tarfile.TarInfo(f"{name}/{at}")
            file.size, file.mtime = len(content), epoch
            file.mode = 0o755 if is_program else 0o644
            archive.addfile(file, io.BytesIO(content))
    (out / f"{name}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main()
