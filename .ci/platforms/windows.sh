# The program for Windows under Wine: virtual time against what Linux finds, each
# command over sockets, the gateway, what is left out. Read by .ci/platforms.sh.

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
on_windows() { (cd "$there" && exec timeout 300 "$wine" "$program" "$@"); }
on_linux() { (cd "$there" && exec "$here" "$@"); }

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

# A program for Windows that goes on until it is ended: `$started` is its process, which
# ends with this one whatever fails, and `$said` what it has said once it is ready.
start() { # start READY ARGUMENTS
    local ready="$1" tries=0
    shift
    output="$there/$1.log"
    : >"$output"
    # Not by way of a function: what is ended must be the program itself.
    (cd "$there" && exec "$wine" "$program" "$@") >"$output" 2>&1 </dev/null &
    started=$!
    until grep -qF "$ready" "$output"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$started" 2>/dev/null; then
            cat "$output" >&2
            broken "\`$*\` on Windows does not become ready"
        fi
        sleep 0.1
    done
    said="$(tr -d '\r' <"$output")"
}
# Ctrl-C, which has it end by itself, with exit code 0.
stop() {
    local code=0
    kill -INT "$started"
    wait "$started" || code=$?
    started=""
    [ "$code" = 0 ] || broken "a program for Windows ended with exit code $code at Ctrl-C: $(cat "$output")"
}
# Where both find the same, but for the machine and the time of day.
same_document() { # same_document LINUX WINDOWS
    local only='del(.host, .started, .wall_s)'
    diff <(jq "$only" "$there/$1") <(jq "$only" "$there/$2") >&2 || broken "$2 says something else than $1"
}
same_text() { # same_text ARGUMENTS
    diff <(on_linux "$@") <(on_windows "$@" | tr -d '\r') >&2 || broken "\`$*\` prints something else on Windows"
}

step "the same findings on Windows"
rm -rf "$there"/{linux,windows}.*
play=(run --for 5s --seeds 1 --lanes "kcp,udp,enet,quic-streams,tcp-cubic")
tune=(tune --lanes kcp,enet --network cable --trials 8 --for 30s --seeds 5 --no-html)
world=(world --testbed sim --players 20 --for 3s --no-html)
# The digest of the findings is said where they are kept for `replay`.
digest() { tr -d '\r' | sed -nE 's/.*digest ([0-9a-f]{16})$/\1/p'; }
for system in linux windows; do
    "on_$system" "${play[@]}" --json $system.json --html $system.html --bundle $system.lagometer \
        --pcap $system.pcapng --qlog $system.qlog 2>&1 >/dev/null | digest >"$there/$system.digest"
    grep -q '</html>' "$there/$system.html" || broken "the page of the run on $system is not whole"
done
of_run="$(cat "$there/linux.digest")"
echo "Linux: $of_run, Windows: $(cat "$there/windows.digest")"
[ -n "$of_run" ] && [ "$of_run" = "$(cat "$there/windows.digest")" ] || broken "the findings differ"
# At length, where LAGOMETER_AT_LENGTH is set: every built-in experiment, twenty seconds of it.
at_length() { # at_length windows|arm|musl
    [ -n "${LAGOMETER_AT_LENGTH:-}" ] || return 0
    step "every experiment, at length: $1"
    local each system digests
    for each in experiments/*.toml; do
        each="$(basename "$each" .toml)"
        digests=()
        for system in linux "$1"; do
            digests+=("$("on_$system" run "$each" --for 20s --seeds 1 --no-html --bundle $system-long.lagometer \
                2>&1 >/dev/null | digest || true)")
        done
        # Those whose lanes are all of libraries that are not linked have none.
        echo "$each: ${digests[*]}"
        [ "${digests[0]}" = "${digests[1]}" ] || broken "the findings of $each differ"
    done
}
at_length windows
cmp "$there/linux.pcapng" "$there/windows.pcapng"
diff -r "$there/linux.qlog" "$there/windows.qlog"
# What the other has kept is found again by each.
on_windows replay linux.lagometer >/dev/null
on_linux replay windows.lagometer >/dev/null
for system in linux windows; do
    "on_$system" compare linux.json windows.json >/dev/null
    "on_$system" report windows.json --html $system-again.html >/dev/null
    "on_$system" "${tune[@]}" --json $system-tune.json >/dev/null
    "on_$system" "${world[@]}" --json $system-world.json >/dev/null
    "on_$system" import windows.pcapng --traffic $system-traffic.log >/dev/null
done
same_document linux-tune.json windows-tune.json
same_document linux-world.json windows-world.json
cmp "$there/linux-traffic.log" "$there/windows-traffic.log"
same_text list networks
same_text list transports
same_text completions powershell
for system in linux windows; do
    "on_$system" man $system.man
done
diff -r "$there/linux.man" "$there/windows.man"

step "sockets on Windows"
on_windows doctor >"$there/doctor.txt"
cat "$there/doctor.txt"
for each in timeBeginPeriod "offloads of UDP" "loopback fast path"; do
    grep -qF "$each" "$there/doctor.txt" || broken "the doctor does not say on Windows: $each"
done
# How late Wine is says nothing; that all lanes deliver, and that it ends, does.
delivered() { # delivered DOCUMENT LANES
    [ "$(jq '[.lanes[] | select(.messages.delivered > 0)] | length' "$there/$1")" = "$2" ] ||
        broken "not every lane of $1 delivers"
}
on_windows run --testbed emu --emu-mode proxy --for 3s --seeds 1 --lanes kcp,udp,enet --no-html \
    --json proxy.json >/dev/null
delivered proxy.json 3
on_windows echo --for 1s --json echo.json >/dev/null
start "the secret is" serve --bind 127.0.0.1:0
to="$(sed -nE 's/.*serving at (.*)$/\1/p' <<<"$said")"
LAGOMETER_SECRET="$(sed -nE 's/.*the secret is ([0-9a-f]+).*/\1/p' <<<"$said")"
export LAGOMETER_SECRET
on_windows run --to "$to" --for 3s --seeds 1 --lanes kcp,udp,enet,quic-streams --no-html --json to.json \
    --pcap to.pcapng >/dev/null
delivered to.json 4
# From one system to the other, too.
on_linux run --to "$to" --for 3s --seeds 1 --lanes kcp,udp,enet,quic-streams --no-html --json across.json >/dev/null
delivered across.json 4
on_windows echo --to "$to" --for 1s --json echo-to.json >/dev/null
jq -e '.echo.iops > 0' "$there/echo.json" "$there/echo-to.json" >/dev/null || broken "no echo comes back over sockets"
on_windows sweep --to "$to" --sizes 64,1k --for 300ms --json sweep.json >/dev/null
jq -e '[.sweep.cells[] | select(.received > 0)] | length == 12' "$there/sweep.json" >/dev/null ||
    broken "the sweep does not measure all of its cells"
on_windows speed --to "$to" --lanes kcp,enet --for 1s --json speed.json >/dev/null
on_windows record --to "$to" --for 2s -o path.trace >/dev/null
[ -s "$there/path.trace" ] || broken "nothing was recorded of the path"
stop
unset LAGOMETER_SECRET

step "the gateway on Windows"
players="$(realpath "$target")/$windows/debug/examples/two_players_move.exe"
open=(gateway --dev --cfsm config/client_authoratative_fsm.json --web 127.0.0.1:0 --sa 127.0.0.1:0 --ca 127.0.0.1:0)
start "peer=server" "${open[@]}"
place() { sed -nE "s/.*the gateway runs.* $1=([0-9.:]+).*/\1/p" <<<"$said"; }
"$wine" "$players" "$(place servers)" "$(place clients)" | tr -d '\r' | tee "$there/players.txt"
[ "$(grep -c 'at Some' "$there/players.txt")" -ge 6 ] || broken "the players do not see each other"
# Threads are not placed there, which is no reason for a warning.
! grep -qF "none is kept on one" "$output" || broken "the gateway warns of processors that it does not count"
# Servers and players of the world of Linux on it.
on_linux world --gateway "$(place clients)" --servers "$(place servers)" --metrics "$(place web)" --players 10 \
    --for 3s --no-html --json gateway.json >/dev/null
jq -e '.world.players.in_game == 10' "$there/gateway.json" >/dev/null || broken "players do not get in"
stop

# Browsers' way to it.
start "peer=client" "${open[@]}" --cn ws --cwm=false
curl --silent --include --max-time 2 --header "Connection: Upgrade" --header "Upgrade: websocket" \
    --header "Sec-WebSocket-Version: 13" --header "Sec-WebSocket-Key: bGFnb21ldGVyIHNheXMgaQ==" \
    "http://$(place clients)/" >"$there/upgrade.txt" || true
grep -qF "101 Switching Protocols" "$there/upgrade.txt" || broken "the gateway does not answer WebSockets"
stop

# And that of games, by the library for C.
cc -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror .ci/platforms/kcp_login.c -I crates/c/include \
    "$target/debug/liblagometer_c.a" -lpthread -ldl -lm -o "$there/kcp_login"
start "the gateway runs" "${open[@]}" --cn kcp --cwm=false
clients="$(place clients)"
"$there/kcp_login" "${clients##*:}" || broken "the gateway does not answer over KCP"
stop

step "what Windows lacks"
refused 3 "--testbed sim" kernel build
refused 3 "--testbed sim" world
refused 3 "\`run\` without \`--testbed\`" shape lan -- true
refused 3 "--emu-mode proxy" agree --for 1s --seeds 1
refused 2 "Linux alone has it" run --testbed emu --emu-mode proxy --lanes udt-stream --for 1s
refused 3 "leave it out" gateway --dev --with-parent
refused 2 "leave \`--pin\` out" echo --pin 0,1 --for 1s
refused 2 "no network is called" run --network nowhere
refused 2 "missing.toml" run missing.toml

step "a bad network inside a program in C, on Windows"
example=(-std=c11 -Wall -Wextra -Werror crates/c/examples/impaired_socket.c -I crates/c/include)
cc -D_POSIX_C_SOURCE=200809L "${example[@]}" "$target/debug/liblagometer_c.a" -lpthread -ldl -lm -o "$there/impaired_socket"
x86_64-w64-mingw32-gcc "${example[@]}" "$target/$windows/debug/liblagometer_c.a" -lws2_32 -lntdll -luserenv \
    -o "$there/impaired_socket.exe"
of_linux="$("$there/impaired_socket" busy-wifi 7)"
of_windows="$(timeout 60 "$wine" "$there/impaired_socket.exe" busy-wifi 7 | tr -d '\r')"
printf '%s\n%s\n' "$of_linux" "$of_windows"
[ "$of_linux" = "$of_windows" ] || broken "the example in C finds something else on Windows"
