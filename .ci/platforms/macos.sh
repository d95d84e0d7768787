# The program for macOS, compiled and linked for both processors. Nothing here runs it.
# Read by .ci/platforms.sh.

step "what programs for macOS are linked with"
# Zig has the system library. Of the frameworks and of the Objective-C runtime, which Apple
# alone hands out, the names stand in for them that the packages which call them declare.
stubs="$there/macos"
rm -rf "$stubs"
stub() { # stub FILE INSTALLED PACKAGES
    local file="$1" installed="$2" each sources=()
    shift 2
    for each in "$@"; do
        sources+=("$(dirname "$(jq -r --arg name "$each" 'first(.packages[] | select(.name == $name)).manifest_path' \
            "$there/metadata.json")")/src")
    done
    mkdir -p "$(dirname "$stubs/$file")"
    {
        printf -- '--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n'
        printf "install-name: '%s'\nexports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    symbols: [ " "$installed"
        grep -rhoE 'pub (fn|static) +[A-Za-z_][A-Za-z0-9_]*' "${sources[@]}" | sed -E 's/.* /_/' | sort -u | paste -sd, -
        printf '    ]\n...\n'
    } >"$stubs/$file"
}
cargo metadata --locked --format-version 1 --filter-platform "${macos[0]}" >"$there/metadata.json"
framework() { # framework NAME PACKAGE
    stub "$1.framework/$1.tbd" "/System/Library/Frameworks/$1.framework/Versions/A/$1" "$2"
}
framework Security security-framework-sys
framework CoreFoundation core-foundation-sys
framework Foundation objc2
stub libobjc.tbd /usr/lib/libobjc.A.dylib objc2

for each in "${macos[@]}"; do
    name="CARGO_TARGET_$(tr a-z- A-Z_ <<<"$each")_RUSTFLAGS"
    declare -x "$name=-L framework=$stubs -L native=$stubs"
    made build "$each" -p lagometer -p lagometer-c
    program="$(realpath "$target")/$each/debug/lagometer"
    # Whose it is, by its first bytes: a program of 64 bits, and the processor.
    case "$each" in aarch64-*) processor=0100000c ;; *) processor=01000007 ;; esac
    found="$(od -A n -t x4 -N 8 "$program" | tr -d ' ')"
    [ "$found" = "feedfacf$processor" ] || broken "$program is no program for $each: $found"
    # The library for C, too.
    "$zig/bin/python" -m ziglang cc -target "${each%%-*}-macos" -std=c11 -Wall -Wextra -Werror \
        crates/c/examples/impaired_socket.c -I crates/c/include "$target/$each/debug/liblagometer_c.a" \
        -o "$there/impaired_socket.$each"
done
