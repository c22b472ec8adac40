#!/bin/sh
set -e

case $1 in
remove) [ ! -d /run/systemd/system ] || deb-systemd-invoke stop server_rental_exporter.socket server_rental_exporter.service >/dev/null || true ;;
0) systemctl --no-reload disable --now server_rental_exporter.socket server_rental_exporter.service >/dev/null 2>&1 || true ;;
esac
