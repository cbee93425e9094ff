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
