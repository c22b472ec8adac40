{{- /* The pod of the Deployment or the StatefulSet. */ -}}
{{- define "server-rental-exporter.podTemplate" -}}
{{- include "server-rental-exporter.validate" . }}
{{- $sources := include "server-rental-exporter.tokenSources" . | fromYamlArray }}
{{- $sharded := include "server-rental-exporter.sharded" . -}}
metadata:
  labels:
    {{- include "server-rental-exporter.labels" (dict "root" . "labels" .Values.podLabels) | nindent 4 }}
  annotations:
    {{- $checksum := dict "checksum/config" (include "server-rental-exporter.config" . | sha256sum) }}
    {{- merge $checksum .Values.podAnnotations | toYaml | nindent 4 }}
spec:
  serviceAccountName: {{ include "server-rental-exporter.serviceAccountName" . }}
  automountServiceAccountToken: false
  # No environment variables for the Services of the namespace.
  enableServiceLinks: false
  {{- with include "server-rental-exporter.fields" (pick .Values "affinity" "dnsConfig" "dnsPolicy" "hostAliases" "nodeSelector" "priorityClassName" "runtimeClassName" "tolerations") }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "server-rental-exporter.imagePullSecrets" . }}
  imagePullSecrets:
    {{- . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: exporter
      image: {{ include "server-rental-exporter.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --config.file=/etc/server-rental-exporter/config/config.yml
        - --log.level={{ .Values.log.level }}
        - --log.format={{ .Values.log.format }}
        {{- if .Values.demo }}
        - --demo
        {{- end }}
        {{- if not .Values.web.overview }}
        - --no-web.overview
        {{- end }}
        {{- if .Values.web.serviceDiscovery }}
        - --web.enable-service-discovery
        {{- end }}
        {{- if .Values.web.lifecycle }}
        - --web.enable-lifecycle
        {{- end }}
        {{- if .Values.web.configSecret.name }}
        - --web.config.file=/etc/server-rental-exporter/web/{{ .Values.web.configSecret.key }}
        {{- end }}
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or .Values.extraEnv $sharded }}
      env:
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if $sharded }}
        # The StatefulSet numbers its pods from 0.
        - name: SERVER_RENTAL_SHARD
          valueFrom:
            fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}
        - {name: SERVER_RENTAL_TOTAL_SHARDS, value: {{ .Values.shards | quote }}}
        {{- end }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: http, containerPort: 10170, protocol: TCP}
      {{- with .Values.startupProbe }}
      startupProbe:
        {{- include "server-rental-exporter.probe" (dict "root" $ "path" "/-/healthy" "probe" .) | nindent 8 }}
      {{- end }}
      livenessProbe:
        {{- include "server-rental-exporter.probe" (dict "root" . "path" "/-/healthy" "probe" .Values.livenessProbe) | nindent 8 }}
      readinessProbe:
        {{- include "server-rental-exporter.probe" (dict "root" . "path" "/-/ready" "probe" .Values.readinessProbe) | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/server-rental-exporter/config, readOnly: true}
        {{- if $sources }}
        - {name: tokens, mountPath: /etc/server-rental-exporter/tokens, readOnly: true}
        {{- end }}
        {{- if .Values.accountsSecret }}
        - {name: accounts, mountPath: /etc/server-rental-exporter/accounts, readOnly: true}
        {{- end }}
        {{- if .Values.web.configSecret.name }}
        - {name: web, mountPath: /etc/server-rental-exporter/web, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "server-rental-exporter.fullname" . }}
    {{- with $sources }}
    - name: tokens
      projected:
        # Readable through fsGroup, by no other user.
        defaultMode: 0440
        sources:
          {{- range . }}
          - secret:
              name: {{ .name }}
              items:
                - {key: {{ .key }}, path: {{ .name }}/{{ .key }}}
          {{- end }}
    {{- end }}
    {{- with .Values.accountsSecret }}
    - name: accounts
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.web.configSecret.name }}
    - name: web
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if gt (include "server-rental-exporter.pods" . | int) 1 }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $selector := dict "labelSelector" (dict "matchLabels" (include "server-rental-exporter.selectorLabels" $ | fromYaml)) }}
    - {{ merge (deepCopy .) $selector | toYaml | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
