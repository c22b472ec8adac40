#!/bin/sh
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi

if [ "$1" = purge ]; then
	deb-systemd-helper purge server_rental_exporter.service server_rental_exporter.socket >/dev/null || true
	rm -rf /etc/server_rental_exporter # with the tokens
fi
