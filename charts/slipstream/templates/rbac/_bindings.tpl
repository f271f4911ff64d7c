{{/* The subjects of the server's bindings. */}}
{{- define "slipstream.rbac.subjects" -}}
subjects:
- {kind: ServiceAccount, namespace: {{ .Release.Namespace }}, name: slipstream}
{{- end }}

{{/* Binds a ClusterRole to the server in the whole cluster: root, role. */}}
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

{{/* Binds a ClusterRole to the server in namespaces, or in the whole cluster if "*" is one of them: root, role, namespaces. */}}
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

{{/* Binds a Role of a namespace to the server: root, role, namespace. */}}
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
