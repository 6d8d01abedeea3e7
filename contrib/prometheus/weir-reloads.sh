#!/bin/sh
# Prints the reloads of a master as metrics, for the textfile collector of node_exporter. Run it once a minute:
#   weir-reloads.sh /run/weir/master.sock >weir.prom.new && mv weir.prom.new /var/lib/prometheus/node-exporter/weir.prom
# The argument is the master's socket (-S). WEIR is the program, if it is not in PATH.
set -eu
socket=${1:?the socket of the master is missing}
processes=$("${WEIR:-weir}" ctl -S "$socket" show proc)
printf '%s\n' "$processes" | awk '
    $2 == "master" && $4 == "[failed:" {
        print "# HELP weir_master_reloads_total Reloads since the start of the master."
        print "# TYPE weir_master_reloads_total counter"
        print "weir_master_reloads_total " $3 + 0
        print "# HELP weir_master_failed_reloads Reloads that failed since the last one that succeeded."
        print "# TYPE weir_master_failed_reloads gauge"
        print "weir_master_failed_reloads " $5 + 0
        found = 1
    }
    END { if (!found) { print "the socket is not that of a master" >"/dev/stderr"; exit 1 } }
'
