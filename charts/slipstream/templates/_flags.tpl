{{/*
The flags of the server that cannot be set with the value flags, and the values that set them. hack/chartschema reads this as well.
*/}}
{{- define "slipstream.flagsOfValues" -}}
admission-client-ca-file: attribution.admission.clientCASecret
admission-segment-file: attribution.admission.segmentSecret
audit-client-ca-file: attribution.audit.clientCASecret
audit-client-names: attribution.audit.clientNames
data-dir: storage.persistence
encryption-provider-config: encryption.configSecret
etcd-cafile: storage.etcd.tlsSecret
etcd-certfile: storage.etcd.tlsSecret
etcd-keyfile: storage.etcd.tlsSecret
etcd-prefix: storage.etcd.prefix
etcd-servers: storage.etcd.servers
namespace: the namespace of the release
secure-port: securePort
serving-authority-file: tls.secretName
serving-authority-secret: tls.mode
serving-service: tls.mode
shutdown-delay-duration: shutdownDelaySeconds
storage-backend: storage.backend
tls-cert-file: tls.secretName
tls-private-key-file: tls.secretName
tracing-config-file: tracing.endpoint
{{- end }}
