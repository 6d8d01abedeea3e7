# Completion of weir for bash, written by 'weir completions bash'.

_weir() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words= files= values=
    case ${COMP_WORDS[1]} in
    load)
        words='-c -t -d -n -r -s -R --constant --reference -T -w --h2 --h3 --streams -e -F -H -I -X --data --body --weight -l -ll -S -P -A -O --json --csv --live --summary -q -v --cipher-list --cipher-suites --tls-ver --curves --tls-reuse --handshakes --sni --ca'
        files='--body --ca'
        values='-c -t -d -n -r -s -R --constant --reference -T -w --streams -H -X --data --weight -O --cipher-list --cipher-suites --tls-ver --curves --sni'
        ;;
    origin)
        words='-L --tls --quic --fcgi --spop --cert --key -c -b -D -n -p --datagrams --text --threads -h --help'
        files='--cert --key -p'
        values='-L --tls --quic --fcgi --spop -c -b -n --text --threads'
        ;;
    bench)
        words='--list --show --check --quick --only --no-direct --rounds --duration --set --syscalls --flame --out --report --sizing --into -h --help'
        files='--out --report --sizing --into'
        values='--show --only --rounds --duration --set'
        ;;
    top)
        words='--once --view --sort --filter --interval -h --help'
        files=''
        values='--view --sort --filter --interval'
        ;;
    ctl)
        words='-s --socket -S -m --master -f --payload -j --json -w --watch --count -k --keep-going -t --timeout -h --help'
        files='-s --socket -S -f --payload'
        values='-w --watch --count -t --timeout'
        ;;
    lint)
        words='-f -j --rules -h --help'
        files='-f'
        values=''
        ;;
    *)
        words='-f -C -D -d -db -p -L -4 -W -Ws -S -x -sf -st -c -dC -dK -dL -q -V -dW -dD -n -N -m -dr -dR -dS -dV -dM -dI -dF -dZ -dT -dG -de -dp -dk -dv -dc -dt -dA'
        files='-f -C -p -x'
        values='-L -S -sf -st -n -N -m -dt'
        [ "$COMP_CWORD" -eq 1 ] && words="load origin bench top ctl lint completions manual $words"
        ;;
    esac
    COMPREPLY=()
    # The value of an option that takes none of the words below.
    case " $values " in *" $previous "*) return ;; esac
    case " $files " in
    *" $previous "*) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    esac
    case $current in
    -*) ;;
    *)
        local file
        while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")
        ;;
    esac
}
complete -o filenames -F _weir weir
