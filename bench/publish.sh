#!/bin/sh
# Repeats all measurements of docs/performance.md and docs/sizing.md, and regenerates both. Run it on an idle machine, from
# the root of the repository; it takes about twenty minutes, and creates a folder with a report for each scenario.
#
#   bench/publish.sh FOLDER [OPTIONS OF weir bench]
#   WEIR=target/release/weir bench/publish.sh /tmp/weir-results --set haproxy_2=/path/to/haproxy
#   AWSLC=/path/to/haproxy bench/publish.sh FOLDER          compares TLS with that build as well
#   ONLY="keep-alive size-sweep" bench/publish.sh FOLDER    measures only these, and uses the stored results of the others
set -eu
weir=${WEIR:-target/release/weir}
out=${1:?usage: bench/publish.sh FOLDER [OPTIONS OF weir bench]}
shift
[ -x "$weir" ] || { echo "$weir is missing: cargo build --release" >&2; exit 1; }
mkdir -p "$out"
failed=""

# measure SCENARIO ROUNDS SECONDS [OPTIONS]: measures one scenario, into its own folder. A failure does not stop the others.
measure() {
    scenario=$1 rounds=$2 seconds=$3
    shift 3
    case " ${ONLY:-$scenario} " in *" $scenario "*) ;; *) return 0 ;; esac
    echo "$(date +%H:%M:%S) $scenario"
    rm -rf "${out:?}/$scenario"
    "$weir" bench "$scenario" --rounds "$rounds" --duration "$seconds" --out "$out/$scenario" "$@" >"$out/$scenario.log" 2>&1 ||
        { failed="$failed $scenario"; tail -n 3 "$out/$scenario.log" >&2; }
}

for scenario in keep-alive client-close bodies-http; do
    measure $scenario 3 1 --no-direct --syscalls "$@"
done
for scenario in forward-close bodies-tcp keep-alive-onecore keep-alive-1000-onecore client-close-onecore \
    forward-close-onecore one-connection-onecore bodies-http-onecore bodies-tcp-onecore; do
    measure $scenario 3 1 --no-direct "$@"
done
# Rules: ten of them, three large maps, refusals and redirects.
for scenario in rules-10-onecore map-million-onecore session-rate redirect-rate redirect-onecore deny-onecore reject-onecore \
    reject-content-onecore reject-connection-onecore redirect-keep-alive-onecore deny-keep-alive-onecore; do
    measure $scenario 5 2 --no-direct "$@"
done
# The cache, compression, agents and applications.
for scenario in cache-hits cache-hits-onecore compression spoe-onecore fastcgi-onecore fastcgi-multiplexed-onecore; do
    measure $scenario 5 2 --no-direct "$@"
done
measure server-close 2 1 --no-direct "$@"
measure connection-rate 2 1 --no-direct "$@"
measure size-sweep 1 1.5 "$@"
measure workers-sweep 2 1 --no-direct --only weir,haproxy,nginx "$@"
measure connections 1 4 --no-direct "$@"
measure forwarder 1 8 "$@"
measure rate-sweep 1 1 --no-direct --only weir,haproxy,nginx "$@"
# TLS, HTTP/2 and HTTP/3; programs without QUIC are left out of the latter. AWSLC is the path of a HAProxy that is built with AWS-LC.
for scenario in tls-handshake-full tls-handshake-full-12 tls-handshake-full-rsa tls-handshake-resumed tls-handshake-resumed-12 \
    tls-keep-alive tls-1m h2-h1 h2-h2 h2-grpc h2-1m h2-1000-streams h2-32-streams h3-return h3-h1 h3-1m h3-handshake-full \
    h3-handshake-resumed; do
    measure $scenario 3 1.2 --no-direct "$@" ${AWSLC:+--set "haproxy_3=$AWSLC"}
done
for scenario in tls-idle h2-idle h3-idle; do
    measure $scenario 1 6 --no-direct "$@" ${AWSLC:+--set "haproxy_3=$AWSLC"}
done

# The flame graph, if perf is installed.
if [ -n "${ONLY:-}" ] || ! command -v perf >/dev/null; then :; else
    echo "$(date +%H:%M:%S) flame graph"
    rm -rf "$out/flame"
    "$weir" bench keep-alive-onecore --quick --no-direct --only weir --flame --out "$out/flame" >"$out/flame.log" 2>&1 &&
        cp "$out/flame/flame-weir.svg" docs/pictures/flame-keep-alive.svg || failed="$failed flame"
    # This is not a measurement: the page uses keep-alive-onecore from the folder of that name.
    rm -f "$out/flame/results.json"
fi

set --
for folder in "$out"/*/; do
    [ -e "$folder/results.json" ] && set -- "$@" "$folder/results.json"
done
"$weir" bench --into docs/performance.md "$@"
"$weir" bench --sizing "$@" >"$out/sizing.md"
cp "$out/sizing.md" docs/sizing.md
echo "$(date +%H:%M:%S) docs/performance.md and docs/sizing.md are written; $out has the reports"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
