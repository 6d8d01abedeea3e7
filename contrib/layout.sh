#!/bin/sh
# Builds Weir with the profile `dist`, optimised by a profile of traffic. The profile is recorded in the build: an instrumented program
# serves scenarios of `weir bench` on loopback. It is used twice:
#
#   1. by the compiler (profile-guided optimisation): what requests run is inlined and laid out in one line, the rest is moved away.
#      Needs llvm-profdata of the LLVM release that `rustc -vV` names (Debian's llvm-22, or `rustup component add llvm-tools`);
#   2. by BOLT, LLVM's optimiser for linked programs (Debian's bolt-19): the blocks of all requests are placed together. The linker
#      has to support --emit-relocs, as lld and GNU ld do.
#
# A step whose tool is missing is skipped with a message. docs/performance.md describes the gain.
#
#   contrib/layout.sh                      builds target/dist/weir
#   contrib/layout.sh PROGRAM RESULT       step 2 alone, for a program with symbols and relocations
#
#   BOLT=llvm-bolt-20 MERGE=merge-fdata-20 PROFDATA=llvm-profdata-21 contrib/layout.sh     other versions of the tools
#   SECONDS_EACH=3 contrib/layout.sh                                                       seconds per scenario (default 1)
set -eu

# Scenarios: requests over kept and closing connections, rules, the cache, applications, compression, TCP, TLS, HTTP/2, HTTP/3.
SCENARIOS="keep-alive-onecore client-close-onecore bodies-http-onecore rules-10-onecore cache-hits-onecore fastcgi-onecore
    fastcgi-multiplexed-onecore compression bodies-tcp-onecore tls-keep-alive tls-handshake-full h2-h1 h2-h2 h2-1m
    h3-h1 h3-1m h3-handshake-full"

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
}

# Writes "$folder/proxy", a command that starts the program $1 and ends it by a soft stop: the profile is written at the end of the
# process, for which SIGTERM does not wait, and the sandbox forbids it.
write_proxy() {
    printf 'global\n    confine off\n' >"$folder/open.cfg"
    cat >"$folder/proxy" <<END
#!/bin/sh
LLVM_PROFILE_FILE="$folder/raw/%p.profraw" "$1" -f "$folder/open.cfg" "\$@" &
child=\$!
trap 'kill -USR1 \$child' TERM
wait \$child
wait \$child
END
    chmod +x "$folder/proxy"
}

# Runs the scenarios with the load of the program $1, through "$folder/proxy".
run_scenarios() {
    for scenario in $SCENARIOS; do
        echo "layout.sh: $scenario"
        rm -rf "${folder:?}/$scenario"
        "$1" bench --show "$scenario" | sed "s#\"{weir}\", \"-db\"#\"$folder/proxy\", \"-db\"#" >"$folder/$scenario.toml"
        "$1" bench "$folder/$scenario.toml" --only weir --no-direct --rounds 1 --duration "${SECONDS_EACH:-1}" \
            --out "$folder/$scenario" >"$folder/log" 2>&1 || fail "$scenario: $(tail -n 1 "$folder/log")"
    done
}

# Fails if one of these commands does not run: the build before its use takes minutes. Empty names are skipped.
check_tools() {
    for tool; do
        [ -z "$tool" ] || "$tool" --version >/dev/null 2>&1 || fail "$tool does not run"
    done
}

# The interpreter of Lua jumps to computed addresses.
SKIPPED=luaV_execute.*

# Places the blocks of the program $1 and writes the result to $2.
place_blocks() {
    rm -rf "$folder/profile".*
    "$bolt" "$1" -instrument -skip-funcs="$SKIPPED" -o "$folder/weir" --instrumentation-file="$folder/profile" \
        --instrumentation-file-append-pid >"$folder/log" 2>&1 || fail "$(tail -n 1 "$folder/log")"
    write_proxy "$folder/weir"
    run_scenarios "$1"
    "$merge" "$folder"/profile.* >"$folder/merged" 2>"$folder/log" || fail "$(tail -n 1 "$folder/log")"
    "$bolt" "$1" -o "$folder/result" -data="$folder/merged" -reorder-blocks=ext-tsp -reorder-functions=cdsort \
        -split-functions -split-all-cold -split-eh -skip-funcs="$SKIPPED" -remove-symtab -dyno-stats >"$folder/log" 2>&1 ||
        fail "$(tail -n 1 "$folder/log")"
    grep "taken branches (" "$folder/log" || true
    "$folder/result" -v >/dev/null || fail "the program does not start"
    mv "$folder/result" "$2"
}

# Builds the program with these flags of rustc for the crates of the program alone, not for those that run in the build.
build() {
    RUSTFLAGS="${RUSTFLAGS:-} $1" CARGO_PROFILE_DIST_STRIP=none \
        cargo build --profile dist -p weir --bin weir --target "$host" --target-dir "$2"
}

bolt=${BOLT:-$(find_command llvm-bolt-19 llvm-bolt)}
merge=${MERGE:-$(find_command merge-fdata-19 merge-fdata)}
check_tools "$bolt" "$merge"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/raw"

if [ $# = 2 ]; then
    [ -n "$bolt" ] && [ -n "$merge" ] || fail "llvm-bolt is missing: apt-get install bolt-19"
    place_blocks "$1" "$2"
    exit
fi
[ $# = 0 ] || fail "usage: contrib/layout.sh [PROGRAM RESULT]"
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
release=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
profdata=${PROFDATA:-$(find_command "llvm-profdata-$release" "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata")}
check_tools "$profdata"
target=${CARGO_TARGET_DIR:-target}
relocations="-Clink-arg=-Wl,--emit-relocs"

if [ -n "$profdata" ]; then
    build "-Cprofile-generate=$folder/raw" "$target/instrumented"
    program=$target/instrumented/$host/dist/weir
    write_proxy "$(readlink -f "$program")"
    # The profile of the load itself is not used.
    LLVM_PROFILE_FILE=/dev/null run_scenarios "$program"
    "$profdata" merge -o "$folder/weir.profdata" "$folder/raw" >"$folder/log" 2>&1 || fail "$(tail -n 1 "$folder/log")"
    build "-Cprofile-use=$folder/weir.profdata $relocations" "$target/profiled"
    program=$target/profiled/$host/dist/weir
else
    echo "layout.sh: no llvm-profdata-$release: the compiler gets no profile" >&2
    build "$relocations" "$target/unprofiled"
    program=$target/unprofiled/$host/dist/weir
fi
mkdir -p "$target/dist"
if [ -n "$bolt" ] && [ -n "$merge" ]; then
    place_blocks "$program" "$target/dist/weir"
else
    echo "layout.sh: no llvm-bolt: the blocks are not placed" >&2
    strip -o "$target/dist/weir" "$program"
fi
