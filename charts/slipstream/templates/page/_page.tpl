{{/* The flags of the page for its proxy: which certificate it has, and which headers name the user. */}}
{{- define "slipstream.page.proxyFlags" -}}
{{- if include "slipstream.page.clientCA" . }}
- --requestheader-client-ca-file=/etc/slipstream/proxy/ca.crt
{{- end }}
{{- with .Values.page.frontProxy }}
{{- with .allowedNames }}
- {{ . | join "," | printf "--requestheader-allowed-names=%s" | toJson }}
{{- end }}
{{- if eq $.Values.page.authentication "FrontProxy" }}
{{- range $name, $headers := dict "username-headers" .usernameHeaders "uid-headers" .uidHeaders "group-headers" .groupHeaders
  "extra-headers-prefix" .extraHeaderPrefixes }}
- --requestheader-{{ $name }}={{ $headers | join "," }}
{{- end }}
{{- end }}
{{- if and .groups (not (has "*" .groups)) }}
- {{ .groups | join "," | printf "--impersonated-groups=%s" | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* The source of a volume with the CA of the proxy's client certificate; empty without one. */}}
{{- define "slipstream.page.clientCA" -}}
{{- with .Values.page.frontProxy.clientCA }}
{{- if .configMap -}}
configMap: {name: {{ .configMap }}, items: [{key: ca.crt, path: ca.crt}]}
{{- else if .secret -}}
secret: {secretName: {{ .secret }}, items: [{key: ca.crt, path: ca.crt}], defaultMode: 0440}
{{- end }}
{{- end }}
{{- end }}
