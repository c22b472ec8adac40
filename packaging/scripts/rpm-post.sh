# shellcheck shell=sh
# The service is not started: it needs a base URL first.
if [ "$1" -eq 1 ]; then # the first installation
	systemctl --no-reload preset server_rental_exporter.service server_rental_exporter.socket >/dev/null 2>&1 || :
fi
