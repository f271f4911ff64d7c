{{/* What is wrong with the values taken together, a sentence a line. What is wrong with one, values.schema.json says. */}}
{{- define "slipstream.problems" -}}
{{- with .Values.storage }}
{{- if and (eq .backend "bbolt") (gt ($.Values.replicas | int) 1) }}
replicas: {{ $.Values.replicas }} needs storage.backend: etcd3, as the files of bbolt can be opened by one Pod at a time
{{- end }}
{{- if and (eq .backend "etcd3") (not .etcd.servers) }}
storage.backend: etcd3 needs storage.etcd.servers, such as [https://etcd-0.etcd:2379]
{{- end }}
{{- if and (eq .backend "bbolt") .etcd.servers (not .migrate.from) }}
storage.etcd.servers needs storage.backend: etcd3; with bbolt everything is in files
{{- end }}
{{- if eq .backend .migrate.from }}
storage.migrate.from: {{ .migrate.from }} needs another storage.backend, to which everything is to go
{{- end }}
{{- if and (eq .migrate.from "etcd3") (not .etcd.servers) }}
storage.migrate.from: etcd3 needs storage.etcd.servers, where everything is
{{- end }}
{{- if and .migrate.replaceTarget (not .migrate.from) }}
storage.migrate.replaceTarget needs storage.migrate.from; without it nothing is moved
{{- end }}
{{- end }}
{{- if and (eq (dig "leader-elect" true .Values.flags) false) (eq .Values.storage.backend "etcd3") }}
flags.leader-elect: false needs storage.backend: bbolt; with etcd3 several servers can be there, of which one must lead
{{- end }}
{{- if and .Values.tls.certManager.issuerRef (ne .Values.tls.mode "cert-manager") }}
tls.certManager.issuerRef needs tls.mode: cert-manager; with {{ .Values.tls.mode }} it makes no certificate
{{- end }}
{{- with .Values.attribution.admission }}
{{- if and (eq .mode "direct") (not .segmentSecret) }}
attribution.admission.mode: direct needs attribution.admission.segmentSecret, a Secret with segment, the secret end of the webhook's path
{{- end }}
{{- if ne .mode "direct" }}
{{- range list "segmentSecret" "clientCASecret" }}
{{- if get $.Values.attribution.admission . }}
attribution.admission.{{ . }} needs attribution.admission.mode: direct; through the aggregator nothing of the kind is asked for
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.watch }}
{{- if and (eq .types "list") (not .list) }}
watch.types: list needs watch.list, such as [{group: apps, resources: [deployments]}]
{{- end }}
{{- if and (ne .types "list") .list }}
watch.list needs watch.types: list; with {{ .types }} it says nothing
{{- end }}
{{- if and (eq .types "list") (not .secrets) }}
{{- range .list }}
{{- if and (has .group (list "" "*")) (or (has "*" .resources) (has "secrets" .resources)) }}
watch.list: [{group: {{ .group | quote }}, resources: {{ .resources | toJson }}}] needs watch.secrets: true, as Secrets are a part of it; name the others instead
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .types "any") (not .secrets) }}
watch.types: any needs watch.secrets: true, as Secrets are a part of everything; name the types with watch.types: list instead
{{- end }}
{{- end }}
{{- with .Values.networkPolicy }}
{{- if not .enabled }}
{{- range $name, $value := dict "ingress.from" .ingress.from "egress.restrict" .egress.restrict }}
{{- if $value }}
networkPolicy.{{ $name }} needs networkPolicy.enabled: true; nothing is kept from anybody otherwise
{{- end }}
{{- end }}
{{- else if not .egress.restrict }}
{{- range $name, $value := dict "apiServer.to" .egress.apiServer.to "remotes.to" .egress.remotes.to "rules" .egress.rules }}
{{- if $value }}
networkPolicy.egress.{{ $name }} needs networkPolicy.egress.restrict: true; everything is let out otherwise
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.podLabels }}
{{- with get (include "slipstream.selectorLabels" $ | fromYaml) $name }}
podLabels.{{ $name }} cannot be {{ $value | quote }}: Services and policies find the Pods by it, with {{ . }}
{{- end }}
{{- end }}
{{- if and .Values.hostNetwork (eq (.Values.securePort | int) 10250) }}
hostNetwork needs another securePort than 10250, which is the kubelet's on every node
{{- end }}
{{- $elsewhere := include "slipstream.flagsOfValues" . | fromYaml }}
{{- range $name, $_ := .Values.flags }}
{{- with get $elsewhere $name }}
flags.{{ $name }} is refused, as the chart sets --{{ $name }} itself, from {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* What in the cluster is in the way. Nothing is known of it where templates are rendered without a cluster. */}}
{{- define "slipstream.obstacles" -}}
{{- if .Values.storage.migrate.from }}
{{- $ours := include "slipstream.selectorLabels" . | fromYaml }}
{{- range dig "items" list (lookup "v1" "Pod" .Release.Namespace "") }}
{{- $labels := .metadata.labels | default dict }}
{{- if eq (pick $labels "app.kubernetes.io/name" "app.kubernetes.io/component" | toJson) ($ours | toJson) }}
storage.migrate.from needs all servers stopped, and the Pod {{ .metadata.name }} is there: kubectl scale deployment/slipstream -n {{ .metadata.namespace }} --replicas=0, and wait until it has ended; if everything has been moved, leave storage.migrate.from out
{{- end }}
{{- end }}
{{- end }}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" "v1alpha1.configbutler.ai" }}
{{- if not .spec.service }}
the API configbutler.ai/v1alpha1 is served by CustomResourceDefinitions of another tool (kubectl get crd | grep configbutler.ai), which have to go first: docs/migrating-from-gitops-reverser.md
{{- end }}
{{- end }}
{{- end }}
