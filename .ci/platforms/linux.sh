# The program for 64-bit ARM under qemu, and the one that is a single file with musl:
# virtual time against what this system finds, and lanes over sockets.
# Read by .ci/platforms.sh.

folder="$(realpath "$target")"
on_arm() { (cd "$there" && exec timeout 600 qemu-aarch64-static -L /usr/aarch64-linux-gnu "$folder/$arm/debug/lagometer" "$@"); }
on_musl() { (cd "$there" && exec timeout 300 "$folder/$musl/debug/lagometer" "$@"); }

as_here() { # as_here arm|musl
    local system="$1" found
    step "the same findings: $system"
    rm -rf "$there/$system".*
    found="$("on_$system" "${play[@]}" --no-html --json $system.json --bundle $system.lagometer \
        --pcap $system.pcapng --qlog $system.qlog 2>&1 >/dev/null | digest)"
    echo "here: $of_run, $system: $found"
    [ "$found" = "$of_run" ] || broken "the findings differ"
    at_length "$system"
    cmp "$there/linux.pcapng" "$there/$system.pcapng"
    diff -r "$there/linux.qlog" "$there/$system.qlog"
    "on_$system" replay windows.lagometer >/dev/null
    "on_$system" "${tune[@]}" --json $system-tune.json >/dev/null
    "on_$system" "${world[@]}" --json $system-world.json >/dev/null
    same_document linux-tune.json $system-tune.json
    same_document linux-world.json $system-world.json

    step "sockets: $system"
    "on_$system" run --testbed emu --emu-mode proxy --for 2s --seeds 1 --lanes kcp,udp --no-html \
        --json $system-proxy.json >/dev/null
    delivered $system-proxy.json 2
    "on_$system" echo --for 1s --json $system-echo.json >/dev/null
    jq -e '.echo.iops > 0' "$there/$system-echo.json" >/dev/null || broken "no echo comes back over sockets"
}
