{{/* Selector labels: Services and policies select the Pods of the server by them. They cannot be changed later. */}}
{{- define "slipstream.selectorLabels" -}}
app.kubernetes.io/name: slipstream
app.kubernetes.io/component: server
{{- end }}

{{/* Selector labels of the Pods of the page. */}}
{{- define "slipstream.page.selectorLabels" -}}
app.kubernetes.io/name: slipstream
app.kubernetes.io/component: page
{{- end }}

{{/* Common labels of all objects. */}}
{{- define "slipstream.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: slipstream
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The image of the server. */}}
{{- define "slipstream.image" -}}
{{- include "slipstream.imageReference" (dict "root" . "image" .Values.image) -}}
{{- end }}

{{/* An image, by digest if one is set: root, image. */}}
{{- define "slipstream.imageReference" -}}
{{- with .image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The security context of Pods. */}}
{{- define "slipstream.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The security context of containers. */}}
{{- define "slipstream.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where Pods are scheduled: root, values with nodeSelector, tolerations and affinity, and the result of slipstream.topologySpread. */}}
{{- define "slipstream.scheduling" -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $.values $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .topologySpread }}
topologySpreadConstraints:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Topology spread constraints: the value, or by default over nodes and zones if there can be several Pods: value, several, and labels, the
selector labels of the Pods.
*/}}
{{- define "slipstream.topologySpread" -}}
{{- if .value }}
{{- toYaml .value }}
{{- else if and (kindIs "invalid" .value) .several }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- $.labels | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ServiceAccount of the server. */}}
{{- define "slipstream.serviceAccountName" -}}
slipstream
{{- end }}

{{/* A PodDisruptionBudget: root, name, and labels, the selector labels of the Pods. */}}
{{- define "slipstream.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  # A Pod that is not ready serves no requests, and must not block the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- .labels | nindent 6 }}
{{- end }}

{{/* The rules of a NetworkPolicy for DNS and kube-apiserver. */}}
{{- define "slipstream.egressOfAll" -}}
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
{{- include "slipstream.egress" .Values.networkPolicy.egress.apiServer }}
{{- end }}

{{/* A rule of a NetworkPolicy for the ports and peers of a value. */}}
{{- define "slipstream.egress" }}
- ports:
  {{- range .ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
