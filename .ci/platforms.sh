# The program for other systems than this, for `./check platforms`: compiled for
# each, and for Windows built, and played under Wine against what Linux finds.

# What each target's C libraries are compiled with, in Debian's packages.
need rustup rustup "it has the standard library for other systems"
need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 "C libraries are compiled for Windows"
need musl-gcc musl-tools "C libraries are compiled against musl"
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu "C libraries are compiled for 64-bit ARM"
need /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross "C libraries are compiled for 64-bit ARM"
# Debian's package puts it beside the path.
wine="$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)"
need "$wine" wine64 "programs for Windows are played under it"

windows=x86_64-pc-windows-gnu
there="$(realpath -m "$target")/wine"
mkdir -p "$there"
broken() {
    echo "check: $1" >&2
    exit 101
}
# Without what debuggers read: gigabytes, for nobody.
elsewhere() { CARGO_PROFILE_DEV_DEBUG=false cargo "$1" --locked -p lagometer --target "$2"; }
for each in "$windows" x86_64-unknown-linux-musl aarch64-unknown-linux-gnu; do
    step "the program for $each"
    rustup target list --installed | grep -qx "$each" || rustup target add "$each"
    elsewhere check "$each" 2>&1 | tee "$there/check.log"
    ! grep -q '^warning' "$there/check.log" || broken "the program for $each has warnings"
done

step "the programs to compare"
cargo build --locked -p lagometer
elsewhere build "$windows"

step "Wine"
export WINEPREFIX="$there/prefix" WINEDEBUG=-all
if [ ! -e "$WINEPREFIX/system.reg" ]; then
    "$wine" wineboot --init
fi
library="$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll"
if [ ! -e "$library" ]; then
    x86_64-w64-mingw32-gcc -shared -o "$library" .ci/wine/bcryptprimitives.c -ladvapi32
fi
here="$(realpath "$target")/debug/lagometer"
program="$(realpath "$target")/$windows/debug/lagometer.exe"
on_windows() { (cd "$there" && timeout 300 "$wine" "$program" "$@"); }

# One line on standard error, with this exit code, that names what to do instead.
refused() { # refused CODE WHAT ARGUMENTS
    local code=0 wanted="$1" what="$2"
    shift 2
    on_windows "$@" >"$there/out" 2>"$there/err" </dev/null || code=$?
    if [ "$code" != "$wanted" ] || [ "$(wc -l <"$there/err")" != 1 ] || ! grep -qF -e "$what" "$there/err"; then
        cat "$there/err" >&2
        broken "\`$*\` on Windows: exit code $code, not $wanted with one line that says \`$what\`"
    fi
    cat "$there/err"
}

step "the same findings on Windows"
play=(run --for 5s --seeds 1 --lanes "kcp,udp,enet,quic-streams,tcp-cubic" --no-html)
# The digest of the findings is said where they are kept for `replay`.
said() { tr -d '\r' | sed -nE 's/.*digest ([0-9a-f]{16})$/\1/p'; }
of_linux="$("$here" "${play[@]}" --json "$there/linux.json" --bundle "$there/linux.lagometer" 2>&1 >/dev/null | said)"
of_windows="$(on_windows "${play[@]}" --json windows.json --bundle windows.lagometer 2>&1 >/dev/null | said)"
echo "Linux: $of_linux, Windows: $of_windows"
[ -n "$of_linux" ] && [ "$of_linux" = "$of_windows" ] || broken "the findings differ"
# What the other has kept is found again by each.
on_windows replay linux.lagometer >/dev/null
"$here" replay "$there/windows.lagometer" >/dev/null
"$here" compare "$there/linux.json" "$there/windows.json" >/dev/null
on_windows compare linux.json windows.json >/dev/null

step "sockets on Windows"
# How late Wine is says nothing; that all lanes deliver, and that it ends, does.
on_windows run --testbed emu --emu-mode proxy --for 3s --seeds 1 --lanes kcp,udp,enet --no-html \
    --json sockets.json >/dev/null
[ "$(grep -c '"delivered": [1-9]' "$there/sockets.json")" = 3 ] || broken "not every lane delivers over sockets"
on_windows echo --for 1s --json echo.json >/dev/null
grep -q '"iops": [1-9]' "$there/echo.json" || broken "no echo comes back over sockets"

step "what Windows lacks"
refused 3 "--testbed sim" kernel build
refused 3 "--testbed sim" world
refused 3 "\`run\` without \`--testbed\`" shape lan -- true
refused 3 "--emu-mode proxy" agree --for 1s --seeds 1
refused 3 "leave it out" gateway --dev --with-parent

step "a bad network inside a program in C, on Windows"
cargo build --locked -p lagometer-c
CARGO_PROFILE_DEV_DEBUG=false cargo build --locked -p lagometer-c --target "$windows"
example=(-std=c11 -Wall -Wextra -Werror crates/c/examples/impaired_socket.c -I crates/c/include)
cc -D_POSIX_C_SOURCE=200809L "${example[@]}" "$target/debug/liblagometer_c.a" -lpthread -ldl -lm -o "$there/impaired_socket"
x86_64-w64-mingw32-gcc "${example[@]}" "$target/$windows/debug/liblagometer_c.a" -lws2_32 -lntdll -luserenv \
    -o "$there/impaired_socket.exe"
of_linux="$("$there/impaired_socket" busy-wifi 7)"
of_windows="$(timeout 60 "$wine" "$there/impaired_socket.exe" busy-wifi 7 | tr -d '\r')"
printf '%s\n%s\n' "$of_linux" "$of_windows"
[ "$of_linux" = "$of_windows" ] || broken "the example in C finds something else on Windows"
