{{- define "labels" -}}
app.kubernetes.io/name: encounters
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "egress" -}}
- to:
    {{- toYaml .to | nindent 4 }}
  ports:
    {{- range .ports }}
    - port: {{ . }}
    {{- end }}
{{- end }}

{{- define "claim" -}}
metadata:
  name: {{ .name }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: {storage: {{ .size }}}
{{- end }}

{{- define "proxy" -}}
# As ENCOUNTERS_MAX_BODY_BYTES; and no search waits in a file.
nginx.ingress.kubernetes.io/proxy-body-size: 64k
nginx.ingress.kubernetes.io/client-body-buffer-size: 64k
nginx.ingress.kubernetes.io/proxy-request-buffering: "on"
nginx.ingress.kubernetes.io/proxy-buffering: "on"
nginx.ingress.kubernetes.io/proxy-buffer-size: 64k
nginx.ingress.kubernetes.io/proxy-read-timeout: "60"
# A pod that went away, or says nothing more: another one is asked, in the first ten seconds.
nginx.ingress.kubernetes.io/proxy-connect-timeout: "2"
nginx.ingress.kubernetes.io/proxy-next-upstream: {{ . }}
nginx.ingress.kubernetes.io/proxy-next-upstream-timeout: "10"
nginx.ingress.kubernetes.io/proxy-next-upstream-tries: "2"
nginx.ingress.kubernetes.io/ssl-redirect: "true"
# Its own log lines would hold addresses with patients in them.
# So would its error log, at every level below emerg: set `error-log-level: emerg` in its ConfigMap.
nginx.ingress.kubernetes.io/enable-access-log: "false"
{{- end }}

{{- define "podAnnotations" -}}
{{- if .Values.configMaps }}
checksum/configuration: {{ include (print $.Template.BasePath "/configmaps.yaml") . | sha256sum }}
{{- end }}
{{- /* Of the cluster, at an upgrade; `helm template` sees none. */}}
{{- range $name := list .Release.Name (printf "%s-hospital" .Release.Name) (printf "%s-tls" .Release.Name) (printf "%s-clients" .Release.Name) }}
{{- with lookup "v1" "Secret" $.Release.Namespace $name }}
checksum/{{ $name }}: {{ .data | toJson | sha256sum }}
{{- end }}
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "resources" -}}
{{- /* docs/run/capacity.md: the peak of a reload. */}}
{{- $workers := index .Values.settings "ENCOUNTERS_WORKERS" | default "2" | atoi }}
{{- $limits := dict "memory" (printf "%dMi" (add (mul $workers 150) 200)) }}
{{- $requests := dict "memory" (printf "%dMi" (add (mul $workers 100) 100)) }}
{{- toYaml (merge (deepCopy .Values.resources) (dict "limits" $limits "requests" $requests)) }}
{{- end }}

{{- define "proxyPort" -}}
{{- if not .Values.proxy.enabled }}8000{{ else if .Values.proxy.tls }}8443{{ else }}8080{{ end }}
{{- end }}

{{- define "proxyContainer" -}}
{{- with .Values.proxy }}
{{- if .enabled }}
- name: proxy
  image: {{ .image.repository }}@{{ required "proxy.image.digest is missing: deploy/pin prints it" .image.digest }}
  imagePullPolicy: {{ .image.pullPolicy }}
  command: [nginx, -c, /etc/nginx/encounters/nginx.conf, -g, "daemon off;"]
  ports:
    - {name: http, containerPort: {{ include "proxyPort" $ }}}
  readinessProbe:
    tcpSocket: {port: http}
    periodSeconds: 10
  lifecycle:
    preStop:
      exec: {command: [sleep, "10"]}
  resources:
    {{- toYaml .resources | nindent 4 }}
  securityContext:
    {{- toYaml $.Values.securityContext | nindent 4 }}
  volumeMounts:
    - {name: proxy, mountPath: /etc/nginx/encounters, readOnly: true}
    - {name: proxy-tmp, mountPath: /tmp}
    {{- if .tls }}
    - {name: tls, mountPath: /etc/nginx/tls, readOnly: true}
    {{- if .clientCertificates }}
    - {name: clients, mountPath: /etc/nginx/clients, readOnly: true}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "proxyVolumes" -}}
{{- with .Values.proxy }}
{{- if .enabled }}
- name: proxy
  configMap: {name: {{ $.Release.Name }}-proxy}
- name: proxy-tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- if .tls }}
- name: tls
  secret: {secretName: {{ $.Release.Name }}-tls, defaultMode: 0440}
{{- if .clientCertificates }}
- name: clients
  secret: {secretName: {{ $.Release.Name }}-clients, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
