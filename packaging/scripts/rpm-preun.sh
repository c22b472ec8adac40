# shellcheck shell=sh
if [ "$1" -eq 0 ]; then # no version remains
	systemctl --no-reload disable --now server_rental_exporter.socket server_rental_exporter.service >/dev/null 2>&1 || :
fi
