{{/* Whom the server's rights are given to. */}}
{{- define "slipstream.rbac.subjects" -}}
subjects:
- {kind: ServiceAccount, namespace: {{ .Release.Namespace }}, name: slipstream}
{{- end }}

{{/* The server gets a ClusterRole in the whole cluster: root, role. */}}
{{- define "slipstream.rbac.everywhere" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .role }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .role }}}
{{ include "slipstream.rbac.subjects" .root }}
{{- end }}

{{/* The server gets a ClusterRole in namespaces, or in the whole cluster if "*" is one of them: root, role, namespaces. */}}
{{- define "slipstream.rbac.in" }}
{{- if has "*" .namespaces }}
{{- include "slipstream.rbac.everywhere" . }}
{{- else }}
{{- range uniq .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $.role }}
  namespace: {{ . | quote }}
  labels:
    {{- include "slipstream.labels" $.root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $.role }}}
{{ include "slipstream.rbac.subjects" $.root }}
{{- end }}
{{- end }}
{{- end }}

{{/* The server gets a Role of a namespace: root, role, namespace. */}}
{{- define "slipstream.rbac.role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .role }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .role }}}
{{ include "slipstream.rbac.subjects" .root }}
{{- end }}
