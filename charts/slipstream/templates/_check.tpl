{{/* Errors in combinations of values, one a line. values.schema.json validates single values. */}}
{{- define "slipstream.problems" -}}
{{- with .Values.storage }}
{{- if and (eq .backend "bbolt") (gt ($.Values.replicas | int) 1) }}
replicas: {{ $.Values.replicas }} needs storage.backend: etcd3, because only one Pod at a time can open the files of bbolt
{{- end }}
{{- if and (eq .backend "etcd3") (not .etcd.servers) }}
storage.backend: etcd3 needs storage.etcd.servers, such as [https://etcd-0.etcd:2379]
{{- end }}
{{- if and (eq .backend "bbolt") .etcd.servers (not .migrate.from) }}
storage.etcd.servers needs storage.backend: etcd3; bbolt stores all data in files
{{- end }}
{{- if eq .backend .migrate.from }}
storage.migrate.from: {{ .migrate.from }} needs another storage.backend to migrate to
{{- end }}
{{- if and (eq .migrate.from "etcd3") (not .etcd.servers) }}
storage.migrate.from: etcd3 needs storage.etcd.servers to read from
{{- end }}
{{- if and .migrate.replaceTarget (not .migrate.from) }}
storage.migrate.replaceTarget needs storage.migrate.from; without it nothing is migrated
{{- end }}
{{- end }}
{{- if and (eq (dig "leader-elect" true .Values.flags) false) (eq .Values.storage.backend "etcd3") }}
flags.leader-elect: false needs storage.backend: bbolt; with etcd3 several servers can run, and one of them must be the leader
{{- end }}
{{- range $prefix, $tls := dict "" .Values.tls "page." .Values.page.tls }}
{{- if and $tls.certManager.issuerRef (ne $tls.mode "cert-manager") }}
{{ $prefix }}tls.certManager.issuerRef needs {{ $prefix }}tls.mode: cert-manager; with {{ $tls.mode }} it is not used
{{- end }}
{{- end }}
{{- with .Values.attribution.admission }}
{{- if and (eq .mode "direct") (not .segmentSecret) }}
attribution.admission.mode: direct needs attribution.admission.segmentSecret, a Secret with segment, the secret last segment of the webhook's path
{{- end }}
{{- if ne .mode "direct" }}
{{- range list "segmentSecret" "clientCASecret" }}
{{- if get $.Values.attribution.admission . }}
attribution.admission.{{ . }} needs attribution.admission.mode: direct; it is not used with other modes
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.watch }}
{{- if and (eq .types "list") (not .list) }}
watch.types: list needs watch.list, such as [{group: apps, resources: [deployments]}]
{{- end }}
{{- if and (ne .types "list") .list }}
watch.list needs watch.types: list; with {{ .types }} it is not used
{{- end }}
{{- if and (eq .types "list") (not .secrets) }}
{{- range .list }}
{{- if and (has .group (list "" "*")) (or (has "*" .resources) (has "secrets" .resources)) }}
watch.list: [{group: {{ .group | quote }}, resources: {{ .resources | toJson }}}] needs watch.secrets: true, because it includes Secrets; or list the other resources by name
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .types "any") (not .secrets) }}
watch.types: any needs watch.secrets: true, because it includes Secrets; or list the other types with watch.types: list
{{- end }}
{{- end }}
{{- with .Values.networkPolicy }}
{{- if not .enabled }}
{{- range $name, $value := dict "ingress.from" .ingress.from "egress.restrict" .egress.restrict }}
{{- if $value }}
networkPolicy.{{ $name }} needs networkPolicy.enabled: true; otherwise it has no effect
{{- end }}
{{- end }}
{{- else if not .egress.restrict }}
{{- $unused := dict "remotes.to" .egress.remotes.to "rules" .egress.rules }}
{{- if not $.Values.page.enabled }}
{{- $_ := set $unused "apiServer.to" .egress.apiServer.to }}
{{- end }}
{{- range $name, $value := $unused }}
{{- if $value }}
networkPolicy.egress.{{ $name }} needs networkPolicy.egress.restrict: true; otherwise it has no effect
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- include "slipstream.labelProblems" (dict "name" "podLabels" "values" .Values.podLabels "selector" (include "slipstream.selectorLabels" .)) }}
{{- if and .Values.hostNetwork (eq (.Values.securePort | int) 10250) }}
hostNetwork needs another securePort than 10250, which the kubelet uses on every node
{{- end }}
{{- include "slipstream.page.problems" . }}
{{- $elsewhere := include "slipstream.flagsOfValues" . | fromYaml }}
{{- range $name, $_ := .Values.flags }}
{{- with get $elsewhere $name }}
flags.{{ $name }} is rejected, because the chart sets --{{ $name }} from {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Errors in labels of Pods: name of the value, values, and selector, the labels by which the Pods are selected. */}}
{{- define "slipstream.labelProblems" }}
{{- range $label, $value := .values }}
{{- with get ($.selector | fromYaml) $label }}
{{ $.name }}.{{ $label }} cannot be {{ $value | quote }}: Services and policies select Pods by this label, with {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Objects in the cluster that prevent the installation. None are found if templates are rendered without a cluster. */}}
{{- define "slipstream.obstacles" -}}
{{- if .Values.storage.migrate.from }}
{{- $ours := include "slipstream.selectorLabels" . | fromYaml }}
{{- range dig "items" list (lookup "v1" "Pod" .Release.Namespace "") }}
{{- $labels := .metadata.labels | default dict }}
{{- if eq (pick $labels "app.kubernetes.io/name" "app.kubernetes.io/component" | toJson) ($ours | toJson) }}
storage.migrate.from needs all servers stopped, but the Pod {{ .metadata.name }} exists: run kubectl scale deployment/slipstream -n {{ .metadata.namespace }} --replicas=0, and wait until it has terminated; if the migration has completed, remove storage.migrate.from
{{- end }}
{{- end }}
{{- end }}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" "v1alpha1.configbutler.ai" }}
{{- if not .spec.service }}
the API configbutler.ai/v1alpha1 is served by CustomResourceDefinitions of another tool (kubectl get crd | grep configbutler.ai), which must be deleted first: https://github.com/configbutler/slipstream/blob/main/docs/migrating-from-gitops-reverser.md
{{- end }}
{{- end }}
{{- end }}
