# The program for other systems than this, for `./check platforms`: lints, as their
# compilers see it; built for each; that for Windows played under Wine, that for 64-bit
# ARM under qemu and that for musl as it is, against what this system finds.

# What each target's C libraries are compiled with, in Debian's packages.
need rustup rustup "it has the standard library for other systems"
need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 "C libraries are compiled for Windows"
need musl-gcc musl-tools "C libraries are compiled against musl"
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu "C libraries are compiled for 64-bit ARM"
need /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross "C libraries are compiled for 64-bit ARM"
need qemu-aarch64-static qemu-user-static "programs for 64-bit ARM are played under it"
need jq jq "documents are compared but for the machine and the time of day"
need python3 python3 "the package with a compiler for macOS comes by way of it"
# Debian's package puts it beside the path.
wine="$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)"
need "$wine" wine64 "programs for Windows are played under it"

windows=x86_64-pc-windows-gnu
microsoft=x86_64-pc-windows-msvc
arm=aarch64-unknown-linux-gnu
musl=x86_64-unknown-linux-musl
macos=(aarch64-apple-darwin x86_64-apple-darwin)
there="$(realpath -m "$target")/platforms"
mkdir -p "$there"
broken() {
    echo "check: $1" >&2
    exit 101
}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
# Microsoft's compiler is not to be had here. Lints look at Rust alone: what builds the
# libraries in C is told that it did.
export CC_x86_64_pc_windows_msvc="$PWD/.ci/platforms/no-compiler/cl.exe"
export AR_x86_64_pc_windows_msvc="$PWD/.ci/platforms/no-compiler/lib.exe"

# Zig's compiler and linker know macOS' headers and its system library.
zig="$(realpath -m "$target")/zig"
if [ ! -x "$zig/bin/cargo-zigbuild" ]; then
    step "the compiler for macOS"
    python3 -m venv "$zig" || need python3-venv python3-venv "the package lives in an environment of its own"
    [ -x "$zig/bin/pip" ] || python3 -m venv --clear "$zig"
    "$zig/bin/pip" install --quiet cargo-zigbuild==0.24.1 ziglang==0.17.1
fi

# Without what debuggers read: gigabytes, for nobody.
elsewhere() { # elsewhere CARGO_COMMAND TARGET ARGUMENTS
    local command="$1" system="$2" cargo=cargo
    shift 2
    case "$system" in *-apple-*) cargo=cargo-zigbuild ;; esac
    PATH="$zig/bin:$PATH" CARGO_PROFILE_DEV_DEBUG=false "$cargo" "$command" --locked --target "$system" "$@"
}

# What a target's compiler says is a warning breaks the check.
made() { # made CARGO_COMMAND TARGET ARGUMENTS
    step "$1 for $2"
    rustup target list --installed | grep -qx "$2" || rustup target add "$2"
    elsewhere "$@" 2>&1 | tee "$there/made.log"
    # That no kit of Apple's is here is known.
    ! grep -E '^warning' "$there/made.log" | grep -qvE 'find MacOSX.sdk|generated [0-9]+ warning' || broken "\`cargo $1\` for $2 has warnings"
}
all=(-p lagometer -p lagometer-c -p lagometer-client --lib --bins --examples)
# Both processors of macOS, and both toolchains of Windows, see the same lines.
made clippy "${macos[0]}" "${all[@]}"
made clippy "$microsoft" "${all[@]}"

made build "$arm" -p lagometer
made build "$windows" -p lagometer -p lagometer-c -p lagometer-client --lib --bin lagometer --example two_players_move

step "the programs to compare"
cargo build --locked -p lagometer -p lagometer-c

# shellcheck source=.ci/platforms/windows.sh
. .ci/platforms/windows.sh
# shellcheck source=.ci/platforms/linux.sh
. .ci/platforms/linux.sh
as_here arm

step "the link, statistics and engines on 64-bit ARM"
elsewhere test "$arm" --quiet -p lagometer-link -p lagometer-stats -p lagometer-results -p lagometer-kcp -p lagometer-tcp --lib

step "an archive, and the licences of every target"
rm -rf "$there"/{described,archive}
mkdir "$there/archive"
"$here" man "$there/described/man"
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" python3 -B deploy/release/pack.py \
    "$windows" "$program" "$there/described" "$there/archive"
packed="$(python3 -m zipfile -l "$there"/archive/lagometer-*.zip)"
for each in lagometer.exe THIRD-PARTY.txt LICENSE-MIT man/lagometer-run.1; do
    grep -qF "/$each " <<<"$packed" || broken "the archive for Windows lacks $each"
done
# Ends in a line that names a package without a text.
python3 -B -c 'import sys; sys.path.insert(0, "deploy/release"); import pack; [*map(pack.licences, sys.argv[1:])]' \
    "$musl" "$arm" "$microsoft" "${macos[@]}"

step "a build without a compiler that it needs"
bare="$there/bare"
rm -rf "$bare"
mkdir "$bare"
ln -s /usr/bin/* "$bare"
rm "$bare"/x86_64-w64-mingw32-*
code=0
PATH="$(dirname "$(command -v cargo)"):$bare" RELEASE_OUT="$there/releases" \
    deploy/release/build.sh "$musl" "$windows" >"$there/out" 2>&1 || code=$?
cat "$there/out"
[ "$code" = 3 ] && [ "$(wc -l <"$there/out")" = 1 ] && grep -qF gcc-mingw-w64-x86-64 "$there/out" ||
    broken "a build without a compiler ended with exit code $code and more than a line that says what to install"

made build "$musl" -p lagometer
as_here musl

# shellcheck source=.ci/platforms/macos.sh
. .ci/platforms/macos.sh
