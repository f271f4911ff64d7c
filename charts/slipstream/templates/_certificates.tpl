{{/*
The objects of cert-manager for a serving certificate: root, name, secretName, issuerRef, and authoritySecret, the Secret of the CA if
issuerRef is empty.
*/}}
{{- define "slipstream.certificates" -}}
{{- $issuer := .issuerRef }}
{{- if not $issuer }}
{{- $issuer = dict "name" .name }}
# A CA for the serving certificate only.
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ .name }}-self-signed
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}-authority
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
spec:
  isCA: true
  commonName: {{ .name }}
  secretName: {{ .authoritySecret }}
  # Five years.
  duration: 43800h
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  issuerRef: {name: {{ .name }}-self-signed}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
spec:
  ca:
    secretName: {{ .authoritySecret }}
---
{{- end }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "slipstream.labels" .root | nindent 4 }}
spec:
  secretName: {{ .secretName }}
  dnsNames:
  - {{ .name }}.{{ .root.Release.Namespace }}.svc
  usages: [digital signature, server auth]
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  issuerRef:
    {{- toYaml $issuer | nindent 4 }}
{{- end }}
