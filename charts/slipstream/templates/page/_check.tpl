{{/* Errors in combinations of the values of the page, one a line. */}}
{{- define "slipstream.page.problems" }}
{{- with .Values.page }}
{{- if and .enabled (not .url) }}
page.url is missing: the address of the page in browsers, such as https://slipstream.example.com
{{- end }}
{{- if and .frontProxy.clientCA.configMap .frontProxy.clientCA.secret }}
page.frontProxy.clientCA: configMap and secret are set; want one of them
{{- end }}
{{- $authority := or .frontProxy.clientCA.configMap .frontProxy.clientCA.secret }}
{{- if and .enabled (eq .authentication "FrontProxy") (not $authority) }}
page.authentication: FrontProxy needs page.frontProxy.clientCA.configMap or page.frontProxy.clientCA.secret, with the CA of the proxy's client certificate as ca.crt; without it, others than the proxy could name any user
{{- end }}
{{- if and .frontProxy.allowedNames (not $authority) }}
page.frontProxy.allowedNames needs page.frontProxy.clientCA; without it the proxy has no certificate
{{- end }}
{{- if and .frontProxy.groups (ne .authentication "FrontProxy") }}
page.frontProxy.groups needs page.authentication: FrontProxy; with {{ .authentication }} the token of the user has the groups
{{- end }}
{{- if and .enabled (eq .authentication "FrontProxy") .frontProxy.groupHeaders (not .frontProxy.groups) }}
page.frontProxy.groups is missing: the groups that the page may impersonate, such as [shop-team]; set ["*"] to allow all, or page.frontProxy.groupHeaders: [] to read none
{{- end }}
{{- if and .frontProxy.groups (not .frontProxy.groupHeaders) }}
page.frontProxy.groups needs page.frontProxy.groupHeaders; without them no groups are read
{{- end }}
{{- if and (has "*" .frontProxy.groups) (gt (len .frontProxy.groups) 1) }}
page.frontProxy.groups: "*" means all groups; want it alone
{{- end }}
{{- range .frontProxy.groups }}
{{- if hasPrefix "system:" . }}
page.frontProxy.groups: {{ . | quote }} is a group of Kubernetes itself, which the page does not impersonate
{{- end }}
{{- end }}
{{- if and .networkPolicy.from (not $.Values.networkPolicy.enabled) }}
page.networkPolicy.from needs networkPolicy.enabled: true; otherwise it has no effect
{{- end }}
{{- include "slipstream.labelProblems" (dict "name" "page.podLabels" "values" .podLabels "selector" (include "slipstream.page.selectorLabels" $)) }}
{{- if and .enabled (eq .tls.mode "generated") (not (lookup "v1" "Namespace" "" "kube-system")) }}
page.tls.mode: generated needs access of helm to the cluster, because helm template and tools that use it would generate another key each time; set cert-manager or secret
{{- end }}
{{- end }}
{{- end }}
