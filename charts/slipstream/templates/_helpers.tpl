{{/* Selector labels: Services and policies select the Pods of the server by them. They cannot be changed later. */}}
{{- define "slipstream.selectorLabels" -}}
app.kubernetes.io/name: slipstream
app.kubernetes.io/component: server
{{- end }}

{{/* Common labels of all objects. */}}
{{- define "slipstream.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: slipstream
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The image, by digest if one is set. */}}
{{- define "slipstream.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The ServiceAccount of the server. */}}
{{- define "slipstream.serviceAccountName" -}}
slipstream
{{- end }}
