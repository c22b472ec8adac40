#!/bin/sh
# The service is neither enabled nor started: it needs a base URL first.
set -e

units="server_rental_exporter.service server_rental_exporter.socket"

if [ "$1" = configure ] || [ "$1" = abort-upgrade ] || [ "$1" = abort-deconfigure ] || [ "$1" = abort-remove ]; then
	for unit in $units; do
		if deb-systemd-helper debian-installed "$unit"; then
			deb-systemd-helper unmask "$unit" >/dev/null || true
			if deb-systemd-helper --quiet was-enabled "$unit"; then
				deb-systemd-helper enable "$unit" >/dev/null || true
			fi
		fi
		# Purge removes the links that are recorded here.
		deb-systemd-helper update-state "$unit" >/dev/null || true
	done
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "$2" ]; then # an upgrade
			deb-systemd-invoke try-restart server_rental_exporter.service >/dev/null || true
		fi
	fi
fi
