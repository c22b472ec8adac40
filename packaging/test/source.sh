#!/usr/bin/env bash
# The life of the program without a package on a machine, under boot.sh, as somebody with a strict umask
# installs it.
# shellcheck source=packaging/test/lib.sh
. "$(dirname "$0")/lib.sh"
cd /run/repository
umask 077

step "install"
cp "$packages"/server_rental_exporter_linux_"$(dpkg --print-architecture)"_*/server_rental_exporter "$test"
documented "make build" | sed "1d; s|install -m 755 |&dist/packages-test/|" | sh -ex
same "$(stat --format=%a "$config" "${config%/*}/tokens" "/etc/systemd/system/$unit" | xargs)" "644 700 644"
says_what_to_set

step "in a container"
mkdir -p /run/systemd/system/service.d
printf '[Service]\nLoadCredential=\n' >/run/systemd/system/service.d/zzz-lxc-service.conf
systemctl daemon-reload
sed -i -e 's|base_url:$|base_url: http://127.0.0.1:10171/api/v1|' -e '/^# accounts:/,$s/^# //' "$config"
for account in main lab; do echo "token-of-$account" >"${config%/*}/tokens/$account"; done
refused systemctl restart "$unit"
eventually logged "accounts[0].token_file: " # no such file, or no permission
documented "sudo install -d -m 755 /etc/systemd" | sh -ex
systemd-run --quiet --unit=simulator "$test/simulator" --account=main:token-of-main --account=lab:token-of-lab
systemctl restart "$unit"
eventually scraped 'server_rental_exporter_collector_success{account="main",collector="servers"} 1'

step "a renewed certificate"
renew() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /etc/ssl/tls.key -out /etc/ssl/tls.crt -subj "/CN=$1" 2>/dev/null
}
subject() { openssl s_client -connect 127.0.0.1:10170 </dev/null 2>/dev/null | grep --quiet "subject=CN = $1"; }
renew first
cat >>/etc/systemd/system/server_rental_exporter.service.d/zzzz-credentials.conf <<END
LoadCredential=tls.crt:/etc/ssl/tls.crt
LoadCredential=tls.key:/etc/ssl/tls.key
Environment=SERVER_RENTAL_WEB_CONFIG_FILE=/etc/server_rental_exporter/web.yml
END
credentials=/run/credentials/$unit
(umask 022 && echo "tls_server_config: {cert_file: $credentials/tls.crt, key_file: $credentials/tls.key}" >/etc/server_rental_exporter/web.yml)
systemctl daemon-reload
systemctl restart "$unit"
eventually subject first
renew second
subject first # until it is restarted
systemctl restart "$unit"
eventually subject second
