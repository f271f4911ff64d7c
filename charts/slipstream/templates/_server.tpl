{{/* How long the server continues to serve requests after a termination signal, in seconds. */}}
{{- define "slipstream.shutdownDelay" -}}
{{- if kindIs "invalid" .Values.shutdownDelaySeconds -}}
{{ ternary 5 0 (eq .Values.storage.backend "etcd3") }}
{{- else -}}
{{ .Values.shutdownDelaySeconds | int }}
{{- end -}}
{{- end }}

{{/* The flags for storage. */}}
{{- define "slipstream.storageFlags" -}}
- --storage-backend={{ .Values.storage.backend }}
{{- if eq .Values.storage.backend "bbolt" }}
- --data-dir=/var/lib/slipstream
{{- else }}
{{- include "slipstream.etcdFlags" . }}
{{- end }}
{{- include "slipstream.encryptionFlags" . }}
{{- end }}

{{/* The flags for the connection to etcd. */}}
{{- define "slipstream.etcdFlags" }}
- {{ .Values.storage.etcd.servers | join "," | printf "--etcd-servers=%s" | toJson }}
- {{ .Values.storage.etcd.prefix | printf "--etcd-prefix=%s" | toJson }}
{{- if .Values.storage.etcd.tlsSecret }}
- --etcd-cafile=/etc/slipstream/etcd/ca.crt
- --etcd-certfile=/etc/slipstream/etcd/tls.crt
- --etcd-keyfile=/etc/slipstream/etcd/tls.key
{{- end }}
{{- end }}

{{/* The flags for encryption at rest. */}}
{{- define "slipstream.encryptionFlags" }}
{{- if .Values.encryption.configSecret }}
- --encryption-provider-config=/etc/slipstream/encryption/encryption.yaml
{{- end }}
{{- end }}

{{/* The flags for serving, with the certificate. */}}
{{- define "slipstream.servingFlags" -}}
- --secure-port={{ .Values.securePort | int }}
- --serving-service=slipstream
{{- if eq .Values.tls.mode "self" }}
- --serving-authority-secret=slipstream-ca
{{- else }}
- --tls-cert-file=/etc/slipstream/tls/tls.crt
- --tls-private-key-file=/etc/slipstream/tls/tls.key
- --serving-authority-file=/etc/slipstream/tls/ca.crt
{{- end }}
- --shutdown-delay-duration={{ include "slipstream.shutdownDelay" . }}s
{{- end }}

{{/* The flags for attribution: which clients can report the authors of changes. */}}
{{- define "slipstream.attributionFlags" -}}
{{- with .Values.attribution.audit }}
{{- if .clientCASecret }}
- --audit-client-ca-file=/etc/slipstream/audit/ca.crt
- {{ .clientNames | join "," | printf "--audit-client-names=%s" | toJson }}
{{- end }}
{{- end }}
{{- with .Values.attribution.admission }}
{{- if eq .mode "direct" }}
- --admission-segment-file=/etc/slipstream/admission/segment
{{- if .clientCASecret }}
- --admission-client-ca-file=/etc/slipstream/admission-client/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The flags for traces. */}}
{{- define "slipstream.tracingFlags" -}}
{{- if .Values.tracing.endpoint }}
- --tracing-config-file=/etc/slipstream/tracing/tracing.yaml
{{- end }}
{{- end }}

{{/* The file of --tracing-config-file. */}}
{{- define "slipstream.tracingConfig" -}}
apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
endpoint: {{ .Values.tracing.endpoint | toJson }}
samplingRatePerMillion: {{ .Values.tracing.samplingRatePerMillion | int }}
{{- end }}

{{/* The flags in the value flags: one for each item of a list. */}}
{{- define "slipstream.otherFlags" -}}
{{- range $name, $value := .Values.flags }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- {{ kindIs "string" . | ternary . (toJson .) | printf "--%s=%s" $name | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Secrets to mount, by purpose. */}}
{{- define "slipstream.mountedSecrets" -}}
{{- $secrets := dict -}}
{{- if ne .Values.tls.mode "self" }}{{ $_ := set $secrets "tls" .Values.tls.secretName }}{{ end -}}
{{- with .Values.storage }}{{ if and (eq .backend "etcd3") .etcd.tlsSecret }}{{ $_ := set $secrets "etcd" .etcd.tlsSecret }}{{ end }}{{ end -}}
{{- with .Values.encryption.configSecret }}{{ $_ := set $secrets "encryption" . }}{{ end -}}
{{- with .Values.attribution.audit.clientCASecret }}{{ $_ := set $secrets "audit" . }}{{ end -}}
{{- with .Values.attribution.admission -}}
{{- if eq .mode "direct" }}{{ $_ := set $secrets "admission" .segmentSecret }}{{ end -}}
{{- if and (eq .mode "direct") .clientCASecret }}{{ $_ := set $secrets "admission-client" .clientCASecret }}{{ end -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end }}
