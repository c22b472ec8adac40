#!/bin/sh
set -e

if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null 2>&1 || true
fi
case $1 in
purge)
	deb-systemd-helper purge server_rental_exporter.service server_rental_exporter.socket >/dev/null || true
	rm -rf /etc/server_rental_exporter # with the tokens
	;;
[1-9]) systemctl try-restart server_rental_exporter.service >/dev/null 2>&1 || true ;; # rpm: an upgrade
esac
