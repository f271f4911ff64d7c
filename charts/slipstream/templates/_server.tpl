{{/* How long the server goes on serving once it is told to end, in seconds. */}}
{{- define "slipstream.shutdownDelay" -}}
{{- if kindIs "invalid" .Values.shutdownDelaySeconds -}}
{{ ternary 5 0 (eq .Values.storage.backend "etcd3") }}
{{- else -}}
{{ .Values.shutdownDelaySeconds | int }}
{{- end -}}
{{- end }}

{{/* Where the server keeps everything, as flags. */}}
{{- define "slipstream.storageFlags" -}}
- --storage-backend={{ .Values.storage.backend }}
{{- if eq .Values.storage.backend "bbolt" }}
- --data-dir=/var/lib/slipstream
{{- else }}
{{- include "slipstream.etcdFlags" . }}
{{- end }}
{{- include "slipstream.encryptionFlags" . }}
{{- end }}

{{/* How to reach the etcd, as flags. */}}
{{- define "slipstream.etcdFlags" }}
- {{ .Values.storage.etcd.servers | join "," | printf "--etcd-servers=%s" | toJson }}
- {{ .Values.storage.etcd.prefix | printf "--etcd-prefix=%s" | toJson }}
{{- if .Values.storage.etcd.tlsSecret }}
- --etcd-cafile=/etc/slipstream/etcd/ca.crt
- --etcd-certfile=/etc/slipstream/etcd/tls.crt
- --etcd-keyfile=/etc/slipstream/etcd/tls.key
{{- end }}
{{- end }}

{{/* Under which keys everything is sealed, as flags. */}}
{{- define "slipstream.encryptionFlags" }}
{{- if .Values.encryption.configSecret }}
- --encryption-provider-config=/etc/slipstream/encryption/encryption.yaml
{{- end }}
{{- end }}

{{/* What the server shows those who call, as flags. */}}
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

{{/* Who may tell the server who makes changes, as flags. */}}
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

{{/* The value flags, as flags: one for each item of a list. */}}
{{- define "slipstream.otherFlags" -}}
{{- range $name, $value := .Values.flags }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- {{ kindIs "string" . | ternary . (toJson .) | printf "--%s=%s" $name | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Secrets that the server reads as files: what for, and which. */}}
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

{{/* How Pods are spread: as the value says, or over nodes and zones when there may be several. */}}
{{- define "slipstream.topologySpread" -}}
{{- if .Values.topologySpreadConstraints }}
{{- toYaml .Values.topologySpreadConstraints }}
{{- else if and (kindIs "invalid" .Values.topologySpreadConstraints) (eq .Values.storage.backend "etcd3") }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- include "slipstream.selectorLabels" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}
