# shellcheck shell=sh
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload >/dev/null 2>&1 || :
	if [ "$1" -ge 1 ]; then # an upgrade
		systemctl try-restart server_rental_exporter.service >/dev/null 2>&1 || :
	fi
fi
