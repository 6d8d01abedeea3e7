#!/bin/sh
# Builds Weir as `cargo build --profile dist` does, guided by a profile of the scenarios below: code that requests run through lies
# together, and what they hardly ever reach lies elsewhere. It takes three times as long.
#
#     contrib/build/profiled.sh            the program is target/<host>/dist/weir afterwards
#
# Needs `rustup component add llvm-tools`, or LLVM_PROFDATA with the path of an llvm-profdata as new as the compiler's LLVM.
# The scenarios run on 127.0.0.1 for two minutes.
set -eu
cd "$(dirname "$0")/../.."

SCENARIOS="keep-alive-onecore one-connection-onecore client-close-onecore forward-close-onecore server-close
    rules-10-onecore stick-table-onecore map-million-onecore deny-keep-alive-onecore redirect-onecore reject-content-onecore
    connection-rate tcp-keep-alive bodies-http-onecore bodies-tcp-onecore forwarder
    cache-hits-onecore compression spoe-onecore fastcgi-onecore fastcgi-multiplexed-onecore exporter
    tls-handshake-full tls-handshake-resumed tls-keep-alive tls-1m
    h2-h1 h2-h2 h2-grpc h2-1m h2-1000-streams"

host=$(rustc -vV | sed -n 's/^host: //p')
profdata=${LLVM_PROFDATA:-$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata}
[ -x "$profdata" ] || {
    echo "llvm-profdata is not there: rustup component add llvm-tools" >&2
    exit 1
}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
raw=$target/profiles
rm -rf "$raw"

# The same profile of Cargo as below: names in the program's profile depend on it.
RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-generate=$raw" \
    cargo build --profile dist -p weir --bin weir --target "$host" --target-dir "$target/profiling"
for scenario in $SCENARIOS; do
    echo "$scenario"
    "$target/profiling/$host/dist/weir" bench "$scenario" --only weir --no-direct --rounds 1 --duration 2 \
        --out "$target/profiling/$scenario" > "$target/profiling/said" 2>&1 || {
        cat "$target/profiling/said" >&2
        exit 1
    }
done
"$profdata" merge -o "$target/weir.profdata" "$raw"
rm -rf "$raw"

RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$target/weir.profdata" \
    cargo build --profile dist -p weir --bin weir --target "$host" --target-dir "$target"
