#!/bin/sh
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop server_rental_exporter.socket server_rental_exporter.service >/dev/null || true
fi
