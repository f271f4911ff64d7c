{{/*
Errors in the format of single values, one a line, for which values.schema.json could only report a pattern. Templates that use these
values must render with invalid ones too, so that these errors are reported.
*/}}
{{- define "slipstream.forms" -}}
{{- range $name, $image := dict "image" .Values.image "page.image" .Values.page.image }}
{{- if regexMatch ":[^/]*$" $image.repository }}
{{ $name }}.repository: {{ $image.repository | quote }} has a tag; set {{ $name }}.tag instead
{{- end }}
{{- end }}
{{- with .Values.page.url }}
{{- if not (regexMatch "^https://([a-z0-9]([-a-z0-9.]*[a-z0-9])?|\\[[0-9a-f:.]+\\])(:[0-9]+)?$" .) }}
page.url: {{ . | quote }} is not an https URL without a path; want https://HOST or https://HOST:PORT in lower case, such as https://slipstream.example.com
{{- end }}
{{- end }}
{{- range .Values.storage.etcd.servers }}
{{- if not (regexMatch "^https?://[^,/ ]+:[0-9]+$" .) }}
storage.etcd.servers: {{ . | quote }} is not the URL of a server; want https://HOST:PORT, such as https://etcd-0.etcd:2379
{{- end }}
{{- end }}
{{- with .Values.tracing.endpoint }}
{{- if not (regexMatch "^[^,/ ]+:[0-9]+$" .) }}
tracing.endpoint: {{ . | quote }} is not the address of a collector; want HOST:PORT, such as collector.observability.svc:4317
{{- end }}
{{- end }}
{{- $quantities := dict "storage.persistence.size" .Values.storage.persistence.size }}
{{- range $prefix, $resources := dict "" .Values.resources "page." .Values.page.resources }}
{{- range $kind, $each := $resources }}
{{- range $resource, $quantity := $each }}
{{- $_ := set $quantities (printf "%sresources.%s.%s" $prefix $kind $resource) $quantity }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $quantity := $quantities }}
{{- if and (kindIs "string" $quantity) (not (regexMatch "^[0-9]+(\\.[0-9]+)?([KMGTPE]i|[kMGTPE]|m|[eE][0-9]+)?$" $quantity)) }}
{{ $name }}: {{ $quantity | quote }} is not a quantity; want a number, and a unit as in 10Gi, 256Mi or 100m
{{- end }}
{{- end }}
{{- with .Values.metrics.serviceMonitor.interval }}
{{- if not (regexMatch "^([0-9]+(ms|s|m|h|d|w|y))+$" (toString .)) }}
metrics.serviceMonitor.interval: {{ . | quote }} is not a duration; want a number and a unit, such as 30s
{{- end }}
{{- end }}
{{- end }}
