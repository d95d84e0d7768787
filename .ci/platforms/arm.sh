# The program for 64-bit ARM under qemu: virtual time against what this system finds,
# lanes over sockets, tests of what decides which packets there are. Read by
# .ci/platforms.sh.

arm_program="$(realpath "$target")/$arm/debug/lagometer"
on_arm() { (cd "$there" && exec timeout 600 qemu-aarch64-static -L /usr/aarch64-linux-gnu "$arm_program" "$@"); }

step "the same findings on 64-bit ARM"
rm -rf "$there"/arm.*
found="$(on_arm "${play[@]}" --no-html --json arm.json --bundle arm.lagometer --pcap arm.pcapng \
    --qlog arm.qlog 2>&1 >/dev/null | digest)"
echo "here: $of_run, 64-bit ARM: $found"
[ "$found" = "$of_run" ] || broken "the findings differ"
cmp "$there/linux.pcapng" "$there/arm.pcapng"
diff -r "$there/linux.qlog" "$there/arm.qlog"
on_arm replay windows.lagometer >/dev/null
on_arm "${tune[@]}" --json arm-tune.json >/dev/null
on_arm "${world[@]}" --json arm-world.json >/dev/null
same_document linux-tune.json arm-tune.json
same_document linux-world.json arm-world.json

step "sockets on 64-bit ARM"
on_arm run --testbed emu --emu-mode proxy --for 2s --seeds 1 --lanes kcp,udp --no-html --json arm-proxy.json >/dev/null
delivered arm-proxy.json 2
on_arm echo --for 1s --json arm-echo.json >/dev/null
jq -e '.echo.iops > 0' "$there/arm-echo.json" >/dev/null || broken "no echo comes back over sockets"

step "the link, statistics and engines on 64-bit ARM"
elsewhere test "$arm" --quiet -p lagometer-link -p lagometer-stats -p lagometer-kcp -p lagometer-tcp --lib
