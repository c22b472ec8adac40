{{- define "server-rental-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* 50 characters: the longest name has a suffix of 13, and a Service's name has at most 63. */ -}}
{{- define "server-rental-exporter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}{{ $name = .Values.fullnameOverride }}
{{- else if not (contains $name .Release.Name) }}{{ $name = printf "%s-%s" .Release.Name $name }}
{{- else }}{{ $name = .Release.Name }}
{{- end }}
{{- $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "server-rental-exporter.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- /* The fields of an object that are set, as they are. */ -}}
{{- define "server-rental-exporter.fields" -}}
{{- $set := dict }}
{{- range $field, $value := . }}{{ if $value }}{{ $set = set $set $field $value }}{{ end }}{{ end }}
{{- if $set }}{{ toYaml $set }}{{ end }}
{{- end }}

{{- define "server-rental-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "server-rental-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* The label by which a ServiceMonitor finds the Service. Tools such as Argo CD replace those above. */ -}}
{{- define "server-rental-exporter.serviceLabel" -}}
server-rental-exporter/service: {{ include "server-rental-exporter.fullname" . }}
{{- end }}

{{- /* True if a StatefulSet runs shards. */ -}}
{{- define "server-rental-exporter.sharded" -}}
{{- if gt (int .Values.shards) 1 }}true{{ end }}
{{- end }}

{{- define "server-rental-exporter.pods" -}}
{{- mul .Values.shards .Values.replicaCount }}
{{- end }}

{{- /* Labels of an object. Takes root and optionally labels. Those of the selector cannot be replaced. */ -}}
{{- define "server-rental-exporter.labels" -}}
{{- $common := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $selector := include "server-rental-exporter.selectorLabels" .root | fromYaml }}
{{- merge $selector (default dict .labels) .root.Values.commonLabels $common | toYaml }}
{{- end }}

{{- /* Metadata of an object. Takes root, name, and optionally namespace, labels and annotations. */ -}}
{{- define "server-rental-exporter.metadata" -}}
metadata:
  name: {{ .name }}
  namespace: {{ default (include "server-rental-exporter.namespace" .root) .namespace }}
  labels:
    {{- include "server-rental-exporter.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "server-rental-exporter.image" -}}
{{- with .Values.image }}
{{- with coalesce (default dict $.Values.global).imageRegistry .registry }}{{ . }}/{{ end }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default (printf "v%s" $.Chart.AppVersion) .tag }}{{ end }}
{{- end }}
{{- end }}

{{- /* The Secrets of the registry, as a YAML list. A chart around this one may give names only. */ -}}
{{- define "server-rental-exporter.imagePullSecrets" -}}
{{- range concat (default list (default dict .Values.global).imagePullSecrets) .Values.imagePullSecrets }}
- {{ kindIs "string" . | ternary (dict "name" .) . | toJson }}
{{- end }}
{{- end }}

{{- define "server-rental-exporter.serviceAccountName" -}}
{{- $own := ternary (include "server-rental-exporter.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $own .Values.serviceAccount.name }}
{{- end }}

{{- define "server-rental-exporter.tokenSecret" -}}
{{ include "server-rental-exporter.fullname" . }}-tokens
{{- end }}

{{- /* The Secret and key of each account whose token is in a Secret, as a YAML list. */ -}}
{{- define "server-rental-exporter.tokenSources" -}}
{{- range $i, $account := .Values.accounts }}
{{- if $account.secret }}
- {name: {{ $account.secret.name }}, key: {{ $account.secret.key }}}
{{- else if $account.token }}
- {name: {{ include "server-rental-exporter.tokenSecret" $ }}, key: account-{{ $i }}}
{{- end }}
{{- end }}
{{- end }}

{{- /* The exporter's configuration file. */ -}}
{{- define "server-rental-exporter.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if .Values.demo }}
{{- $config = set $config "api" (omit $config.api "base_url") }}
{{- end }}
{{- if gt (int .Values.replicaCount) 1 }}
{{- $config = merge $config (dict "api" (dict "rate_limit" (dict "public" 29 "account" 60))) }}
{{- end }}
{{- $accounts := list }}
{{- range $i, $account := .Values.accounts }}
{{- $file := $account.tokenFile }}
{{- with $account.secret }}{{ $file = printf "/etc/server-rental-exporter/tokens/%s/%s" .name .key }}{{ end }}
{{- if $account.token }}
{{- $file = printf "/etc/server-rental-exporter/tokens/%s/account-%d" (include "server-rental-exporter.tokenSecret" $) $i }}
{{- end }}
{{- $accounts = append $accounts (dict "name" $account.name "token_file" $file) }}
{{- end }}
{{- if $accounts }}{{ $config = set $config "accounts" $accounts }}{{ end }}
{{- if .Values.accountsSecret }}
{{- $config = set $config "account_files" (append (default list $config.account_files) "/etc/server-rental-exporter/accounts/*") }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* A probe: how it asks depends on the web configuration. Takes root, path and probe. */ -}}
{{- define "server-rental-exporter.probe" -}}
{{- if .root.Values.web.authentication -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" .root.Values.web.tls }}
{{- end }}
{{ toYaml .probe }}
{{- end }}

{{- /* The port to which the exporter connects: that of the proxy, or else that of the API. */ -}}
{{- define "server-rental-exporter.egressPort" -}}
{{- $api := .Values.config.api }}
{{- $url := urlParse (default $api.base_url (dig "http" "proxy_url" "" $api)) }}
{{- $default := ternary "80" "443" (eq $url.scheme "http") }}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default $default }}
{{- end }}

{{- /* The errors of values that no schema finds, all at once. */ -}}
{{- define "server-rental-exporter.validate" -}}
{{- $errors := list }}
{{- if .Values.demo }}
{{- if .Values.config.api.base_url }}{{ $errors = append $errors "config.api.base_url: must be empty with demo, which has an API of its own" }}{{ end }}
{{- if or .Values.accounts .Values.accountsSecret .Values.config.account_files }}{{ $errors = append $errors "accounts, accountsSecret, config.account_files: must be empty with demo, which has accounts of its own" }}{{ end }}
{{- else if not .Values.config.api.base_url }}
{{- $errors = append $errors "config.api.base_url: is required; set demo=true to export a simulated provider" }}
{{- end }}
{{- $names := list }}{{ $sources := list }}{{ $own := 0 }}{{ $existing := 0 }}
{{- range .Values.accounts }}
{{- if has .name $names }}{{ $errors = append $errors (printf "accounts: there are two accounts %q" .name) }}{{ end }}
{{- $names = append $names .name }}
{{- if ne 1 (len (compact (list .secret .tokenFile .token))) }}
{{- $errors = append $errors (printf "accounts: %q needs one of secret, tokenFile and token" .name) }}
{{- end }}
{{- with .secret }}
{{- if has . $sources }}{{ $errors = append $errors (printf "accounts: key %q of Secret %q is used twice" .key .name) }}{{ end }}
{{- $sources = append $sources . }}
{{- end }}
{{- if .secret }}{{ $existing = add1 $existing }}{{ end }}
{{- if .token }}{{ $own = add1 $own }}{{ end }}
{{- end }}
{{- if and $own $existing }}
{{- $errors = append $errors "accounts: the chart creates no Secret beside an existing one; add the tokens to the existing Secret" }}
{{- end }}
{{- if include "server-rental-exporter.sharded" . }}
{{- if gt (int .Values.replicaCount) 1 }}
{{- $errors = append $errors "replicaCount: must be 1 with shards, each of which is one pod; 0 stops them" }}
{{- end }}
{{- if semverCompare "<1.28.0-0" .Capabilities.KubeVersion.Version }}
{{- $errors = append $errors "shards: need Kubernetes 1.28 or later, which labels a pod with its index" }}
{{- end }}
{{- end }}
{{- $balanced := list "LoadBalancer" }}{{ $exposed := list "NodePort" "LoadBalancer" }}
{{- $types := dict "nodePort" $exposed "externalTrafficPolicy" $exposed "loadBalancerIP" $balanced "loadBalancerClass" $balanced "loadBalancerSourceRanges" $balanced }}
{{- range $key, $allowed := $types }}
{{- if and (get $.Values.service $key) (not (has $.Values.service.type $allowed)) }}
{{- $errors = append $errors (printf "service.%s: needs service.type %s" $key (join " or " $allowed)) }}
{{- end }}
{{- end }}
{{- if and (or .Values.web.tls .Values.web.authentication) (not .Values.web.configSecret.name) }}
{{- $errors = append $errors "web.configSecret.name: is required with web.tls or web.authentication" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.from) }}
{{- $errors = append $errors "networkPolicy.from: must not be empty, because everybody could connect" }}
{{- end }}
{{- if and .Values.scrapeConfig.enabled (not .Values.web.serviceDiscovery) }}
{{- $errors = append $errors "scrapeConfig.enabled: needs web.serviceDiscovery" }}
{{- end }}
{{- if .Values.prometheusRule.disabledAlerts }}
{{- $alerts := list }}
{{- range $path, $_ := .Files.Glob "files/alerts/*.rules.yml" }}
{{- range ($.Files.Get $path | fromYaml).groups }}{{ range .rules }}{{ $alerts = append $alerts .alert }}{{ end }}{{ end }}
{{- end }}
{{- range .Values.prometheusRule.disabledAlerts }}
{{- if not (has . $alerts) }}{{ $errors = append $errors (printf "prometheusRule.disabledAlerts: there is no alert %q" .) }}{{ end }}
{{- end }}
{{- end }}
{{- if $errors }}{{ fail (printf "\n%s" (join "\n" $errors)) }}{{ end }}
{{- end }}
