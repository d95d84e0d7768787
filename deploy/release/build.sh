#!/usr/bin/env bash
# Archives of the program, one for each target: the program, completions, manual
# pages, the licences of all that is in it; and their checksums. Where neither the
# tree, nor the compilers, nor the commit's time differ, they are the same bytes.
#
#   deploy/release/build.sh [--twice] [TARGET...]
#
# Without targets: those that can be built on this system. `--twice` builds all of
# them once more, from a copy of the tree in another folder, and compares.
# RELEASE_OUT says where they go (target/releases).
set -euo pipefail
case "${RELEASE_OUT:-/}" in /* | [A-Za-z]:*) ;; *) RELEASE_OUT="$PWD/$RELEASE_OUT" ;; esac
cd "$(dirname "$0")/../.."

fail() { # fail CODE MESSAGE
    echo "release: $2" >&2
    exit "$1"
}
need() { # need COMMAND MEND
    command -v "$1" >/dev/null || fail 3 "\`$1\` is missing: $2"
}
need cargo "install the Rust toolchain from rustup"
need rustc "install the Rust toolchain from rustup"
need python3 "it packs the archives"
need git "the newest commit's time stands for the build's"
case "$(uname -s)" in
Linux) need cc "apt-get install gcc" ;;
Darwin) need cc "xcode-select --install" ;;
esac

twice=false
targets=()
for each in "$@"; do
    case "$each" in
    --twice) twice=true ;;
    -*) fail 2 "\`$each\` is not known: build.sh [--twice] [TARGET...]" ;;
    *) targets+=("$each") ;;
    esac
done
if [ "${#targets[@]}" = 0 ]; then
    case "$(uname -s)" in
    Linux) targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-gnu x86_64-pc-windows-gnu) ;;
    Darwin) targets=(aarch64-apple-darwin x86_64-apple-darwin) ;;
    *) targets=(x86_64-pc-windows-msvc) ;;
    esac
fi

# What each target wants, before anything is removed or compiled.
standard="$(rustc --print sysroot)/lib/rustlib"
for each in "${targets[@]}"; do
    case "$each" in
    x86_64-pc-windows-gnu) need x86_64-w64-mingw32-gcc "apt-get install gcc-mingw-w64-x86-64" ;;
    x86_64-unknown-linux-musl) need musl-gcc "apt-get install musl-tools" ;;
    aarch64-unknown-linux-gnu)
        [ "$(uname -m)" = aarch64 ] ||
            need aarch64-linux-gnu-gcc "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        ;;
    esac
    rustc --print target-list | tr -d '\r' | grep -x "$each" >/dev/null ||
        fail 2 "\`$each\` is no target that \`rustc --print target-list\` knows"
    [ -d "$standard/$each/lib" ] || need rustup "it has Rust's standard library for $each"
done

# The newest commit's time stands for the build's: what is built later is the same.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH="$(git log -1 --format=%ct 2>/dev/null)" ||
        fail 3 "git does not say when this tree was made: set SOURCE_DATE_EPOCH to a time in seconds"
fi
export SOURCE_DATE_EPOCH
registry="${CARGO_HOME:-$HOME/.cargo}"
out="${RELEASE_OUT:-${CARGO_TARGET_DIR:-target}/releases}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"

# A folder as compilers name it: on Windows not as this shell does.
named() {
    if command -v cygpath >/dev/null; then cygpath -w "$1"; else printf '%s\n' "$1"; fi
}

# Builds the program of one target from the tree in a folder. No path of this machine
# stays in it: they are what differs between two.
program() { # program TARGET TREE TARGET_FOLDER
    local each of_c="" flags=()
    for each in "$(named "$2")=/lagometer" "$(named "$registry")=/cargo" "$(named "$3")=/target"; do
        flags+=("--remap-path-prefix=$each")
        # Spaces in it are the path's.
        of_c+="$(printf '%q ' "-ffile-prefix-map=$each")"
    done
    case "$1" in
    x86_64-pc-windows-gnu)
        # The time of linking would stand in its header.
        flags+=("-Clink-arg=-Wl,--no-insert-timestamp")
        # That of the tree that is built, so that both builds of two take their own.
        case "$(uname -s)" in
        Linux | Darwin)
            export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER="$2/deploy/release/link-windows"
            ;;
        esac
        ;;
    *-msvc)
        flags+=("-Clink-arg=/Brepro")
        of_c=""
        ;;
    aarch64-unknown-linux-gnu)
        if [ "$(uname -m)" != aarch64 ]; then
            export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        fi
        ;;
    esac
    local IFS=$'\x1f'
    # Windows' shell rewrites what looks like a path to it.
    (cd "$2" && MSYS2_ENV_CONV_EXCL=CARGO_ENCODED_RUSTFLAGS CARGO_ENCODED_RUSTFLAGS="${flags[*]}" \
        CC_SHELL_ESCAPED_FLAGS=1 CFLAGS="$of_c" CXXFLAGS="$of_c" CARGO_TARGET_DIR="$3" \
        cargo build --release --locked -p lagometer --target "$1")
}

# What the shells and `man` want to know of the command line, from a program that
# this system runs.
describe() { # describe PROGRAM FOLDER
    local shell
    mkdir -p "$2/completions"
    for shell in bash elvish fish powershell zsh; do
        "$1" completions "$shell" >"$2/completions/lagometer.$shell"
    done
    "$1" man "$2/man"
}

archives() { # archives TREE TARGET_FOLDER OUT
    local each built described=""
    for each in "${targets[@]}"; do
        [ -d "$standard/$each/lib" ] || rustup target add "$each"
        program "$each" "$1" "$2"
        built="$2/$each/release/lagometer"
        case "$each" in *-windows-*) built="$built.exe" ;; esac
        # That another system's cannot be started is no mistake.
        if [ -z "$described" ] && "$built" --version >/dev/null 2>&1; then
            described="$2/described"
            rm -rf "$described"
            describe "$built" "$described"
        fi
    done
    if [ -z "$described" ]; then
        described="$2/described"
        rm -rf "$described"
        (cd "$1" && CARGO_TARGET_DIR="$2" cargo build --locked -p lagometer)
        describe "$2/debug/lagometer" "$described"
    fi
    for each in "${targets[@]}"; do
        built="$2/$each/release/lagometer"
        case "$each" in *-windows-*) built="$built.exe" ;; esac
        (cd "$1" && python3 deploy/release/pack.py "$each" "$built" "$described" "$3")
    done
    (cd "$3" && python3 -c '
import hashlib, pathlib, sys
# What checks the sums elsewhere takes no line ends of Windows.
sys.stdout.reconfigure(newline="\n")
for path in sorted(pathlib.Path().glob("lagometer-*")):
    print(hashlib.sha256(path.read_bytes()).hexdigest() + "  " + path.name)
' >SHA256SUMS)
}

rm -f "$out"/lagometer-* "$out/SHA256SUMS"
mkdir -p "${CARGO_TARGET_DIR:-target}/release-build"
archives "$PWD" "$(cd "${CARGO_TARGET_DIR:-target}/release-build" && pwd)" "$out"
if "$twice"; then
    elsewhere="$(mktemp -d)"
    trap 'rm -rf "$elsewhere"' EXIT
    mkdir "$elsewhere/tree" "$elsewhere/built" "$elsewhere/out"
    # What git knows of, as it lies here.
    git ls-files -z | tar --null -cf - -T - | tar -xf - -C "$elsewhere/tree"
    archives "$elsewhere/tree" "$elsewhere/built" "$elsewhere/out"
    if ! diff "$out/SHA256SUMS" "$elsewhere/out/SHA256SUMS" >&2; then
        trap - EXIT
        fail 1 "two builds differ: compare $out with $elsewhere/out by diffoscope"
    fi
    echo "release: two builds, the same bytes" >&2
fi
cat "$out/SHA256SUMS"
