#!/bin/sh
# The service is neither enabled nor started: it needs a base URL first. These scripts serve both
# packages: dpkg gives them an action, rpm the number of versions that are installed then.
set -e

case $1 in
configure | abort-upgrade | abort-deconfigure | abort-remove)
	for unit in server_rental_exporter.service server_rental_exporter.socket; do
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
	;;
1) systemctl --no-reload preset server_rental_exporter.service server_rental_exporter.socket >/dev/null 2>&1 || true ;;
esac
