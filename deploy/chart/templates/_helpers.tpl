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
# So would its error log: set `error-log-level: crit` in the ConfigMap of the controller.
nginx.ingress.kubernetes.io/enable-access-log: "false"
{{- end }}
