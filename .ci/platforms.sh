# The program for other systems than this, for `./check platforms`: compiled for each;
# that for Windows played under Wine, and that for 64-bit ARM under qemu, against what
# this system finds.

# What each target's C libraries are compiled with, in Debian's packages.
need rustup rustup "it has the standard library for other systems"
need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 "C libraries are compiled for Windows"
need musl-gcc musl-tools "C libraries are compiled against musl"
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu "C libraries are compiled for 64-bit ARM"
need /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross "C libraries are compiled for 64-bit ARM"
need qemu-aarch64-static qemu-user-static "programs for 64-bit ARM are played under it"
need jq jq "documents are compared but for the machine and the time of day"
# Debian's package puts it beside the path.
wine="$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)"
need "$wine" wine64 "programs for Windows are played under it"

windows=x86_64-pc-windows-gnu
arm=aarch64-unknown-linux-gnu
musl=x86_64-unknown-linux-musl
there="$(realpath -m "$target")/platforms"
mkdir -p "$there"
broken() {
    echo "check: $1" >&2
    exit 101
}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
# Without what debuggers read: gigabytes, for nobody.
elsewhere() { # elsewhere CARGO_COMMAND TARGET ARGUMENTS
    local command="$1" system="$2"
    shift 2
    CARGO_PROFILE_DEV_DEBUG=false cargo "$command" --locked --target "$system" "$@"
}

# What a target's compiler says is a warning breaks the check.
made() { # made CARGO_COMMAND TARGET ARGUMENTS
    step "the program for $2"
    rustup target list --installed | grep -qx "$2" || rustup target add "$2"
    elsewhere "$@" 2>&1 | tee "$there/made.log"
    ! grep -q '^warning' "$there/made.log" || broken "the program for $2 has warnings"
}
made build "$arm" -p lagometer
made build "$windows" -p lagometer -p lagometer-c -p lagometer-client --lib --bin lagometer --example two_players_move

step "the programs to compare"
cargo build --locked -p lagometer -p lagometer-c

# shellcheck source=.ci/platforms/windows.sh
. .ci/platforms/windows.sh
# shellcheck source=.ci/platforms/arm.sh
. .ci/platforms/arm.sh

made check "$musl" -p lagometer
