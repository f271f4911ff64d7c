{{/* The secret last segment of the webhook's path: the first line of the Secret, which is not part of the values. */}}
{{- define "slipstream.segment" -}}
{{- $name := .Values.attribution.admission.segmentSecret }}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $name }}
{{- $segment := dig "data" "segment" "" $secret | b64dec | trim | splitList "\n" | first | trim }}
{{- if not $secret }}
{{- fail (printf "\nthe Secret %s with segment, of attribution.admission.segmentSecret, cannot be read in the namespace %s: create it first, give helm access to the cluster (helm template has it with --dry-run=server), or set attribution.admission.create: false and apply artifacts/attribution/validating-webhook-configuration-direct.yaml yourself" $name .Release.Namespace) }}
{{- end }}
{{- if not (regexMatch "^[A-Za-z0-9._~-]{32,}$" $segment) }}
{{- fail (printf "\nthe Secret %s of attribution.admission.segmentSecret must have, as segment, a line of at least 32 letters, digits and -._~: openssl rand -hex 32" $name) }}
{{- end }}
{{- $segment }}
{{- end }}
