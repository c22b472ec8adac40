#compdef server_rental_exporter

_server_rental_exporter() {
    local matches=($(${words[1]} --completion-bash "${(@)words[2,$CURRENT]}"))
    compadd -a matches

    if [[ $compstate[nmatches] -eq 0 && $words[$CURRENT] != -* ]]; then
        _files
    fi
}

if [[ "$(basename -- ${(%):-%x})" != "_server_rental_exporter" ]]; then
    compdef _server_rental_exporter server_rental_exporter
fi

[[ $funcstack[1] != _server_rental_exporter ]] || _server_rental_exporter "$@"
