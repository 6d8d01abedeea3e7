#!/bin/sh
# Builds Weir with the profile `dist` and optimises its code layout by a profile of traffic: BOLT, LLVM's optimiser for linked programs
# (Debian's package bolt-19), profiles an instrumented copy under scenarios of `weir bench` on loopback, and places the blocks
# of all requests together, followed by rarely used ones. docs/performance.md describes the gain. The linker has to
# support --emit-relocs, as lld and GNU ld do.
#
#   contrib/layout.sh                      builds target/dist/weir
#   contrib/layout.sh PROGRAM RESULT       optimises a program with symbols and relocations
#
#   BOLT=llvm-bolt-20 MERGE=merge-fdata-20 contrib/layout.sh     another version of BOLT
#   SECONDS_EACH=3 contrib/layout.sh                             seconds per scenario (default 1)
set -eu

# Scenarios: requests over kept and closing connections, rules, the cache, applications, compression, TCP, TLS, HTTP/2.
SCENARIOS="keep-alive-onecore client-close-onecore bodies-http-onecore rules-10-onecore cache-hits-onecore fastcgi-onecore
    fastcgi-multiplexed-onecore compression bodies-tcp-onecore tls-keep-alive tls-handshake-full h2-h1 h2-h2 h2-1m"

fail() {
    echo "layout.sh: $1" >&2
    exit 1
}

# Prints the path of the first of these commands that exists: BOLT searches its runtime next to it.
find_command() {
    for name; do
        if command -v "$name" >/dev/null; then
            readlink -f "$(command -v "$name")"
            return
        fi
    done
    fail "$1 is missing: apt-get install bolt-19"
}

# The interpreter of Lua jumps to computed addresses.
SKIPPED=luaV_execute.*

bolt=${BOLT:-$(find_command llvm-bolt-19 llvm-bolt)}
merge=${MERGE:-$(find_command merge-fdata-19 merge-fdata)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ $# = 2 ]; then
    program=$1 result=$2
else
    [ $# = 0 ] || fail "usage: contrib/layout.sh [PROGRAM RESULT]"
    cd "$(dirname "$0")/.."
    CARGO_PROFILE_DIST_STRIP=none cargo rustc --profile dist -p weir --bin weir -- -C link-arg=-Wl,--emit-relocs
    result=${CARGO_TARGET_DIR:-target}/dist/weir
    program=$result
fi

"$bolt" "$program" -instrument -skip-funcs="$SKIPPED" -o "$folder/weir" --instrumentation-file="$folder/profile" \
    --instrumentation-file-append-pid >"$folder/log" 2>&1 || fail "$(tail -n 1 "$folder/log")"
# The profile is written at the end of the process: SIGTERM does not wait for that, and the sandbox forbids it.
printf 'global\n    confine off\n' >"$folder/open.cfg"
cat >"$folder/proxy" <<END
#!/bin/sh
"$folder/weir" -f "$folder/open.cfg" "\$@" &
child=\$!
trap 'kill -USR1 \$child' TERM
wait \$child
wait \$child
END
chmod +x "$folder/proxy"
for scenario in $SCENARIOS; do
    echo "layout.sh: $scenario"
    "$program" bench --show "$scenario" | sed "s#\"{weir}\", \"-db\"#\"$folder/proxy\", \"-db\"#" >"$folder/$scenario.toml"
    "$program" bench "$folder/$scenario.toml" --only weir --no-direct --rounds 1 --duration "${SECONDS_EACH:-1}" \
        --out "$folder/$scenario" >"$folder/log" 2>&1 || fail "$scenario: $(tail -n 1 "$folder/log")"
done
"$merge" "$folder"/profile.* >"$folder/merged" 2>"$folder/log" || fail "$(tail -n 1 "$folder/log")"
"$bolt" "$program" -o "$folder/result" -data="$folder/merged" -reorder-blocks=ext-tsp -reorder-functions=cdsort \
    -split-functions -split-all-cold -split-eh -skip-funcs="$SKIPPED" -remove-symtab -dyno-stats >"$folder/log" 2>&1 || fail "$(tail -n 1 "$folder/log")"
grep "taken branches (" "$folder/log" || true
"$folder/result" -v >/dev/null || fail "the program does not start"
mv "$folder/result" "$result"
