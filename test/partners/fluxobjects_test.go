// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"fmt"
	"strings"
	"testing"
)

// objects is the minimum number of objects that the mirror has, and teams that of namespaces with objects.
const (
	objects = 500
	teams   = 10
)

// ofCluster are the objects without a namespace, and those that other clusters must not get.
const ofCluster = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.com}
spec:
  group: example.com
  names: {plural: gauges, singular: gauge, kind: Gauge}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/disks
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "example:reader"}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: Example}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example: aggregated}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-this-cluster, namespace: kube-system}
data: {authority: this cluster}
---
apiVersion: v1
kind: Secret
metadata: {name: of-this-cluster, namespace: kube-system}
stringData: {token: this cluster}
`

// ofTeam are the objects of a namespace beside its ConfigMaps and Secrets.
const ofTeam = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: web-token, namespace: %[1]s, annotations: {kubernetes.io/service-account.name: web}}
type: kubernetes.io/service-account-token
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: %[1]s, labels: {team: %[1]s}, annotations: {description: "a password is hunter2"}}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{"registry.example.com":{"password":"hunter2"}}}'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: web, containers: [{name: web, image: "shop/web:1.8", env: [{name: PORT, value: "080"}]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %[1]s}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "shop/db:14"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside, namespace: %[1]s}
spec: {ports: [{name: db, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outside-1, namespace: %[1]s, labels: {kubernetes.io/service-name: outside}}
addressType: IPv4
ports: [{name: db, port: 5432}]
endpoints: [{addresses: [192.0.2.1]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: %[1]s}
spec:
  rules:
  - host: web.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: %[1]s}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: %[1]s}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: %[1]s}
spec: {limits: [{type: Container, default: {cpu: 500m}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "team:Admin", namespace: %[1]s}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "team:Admin", namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "team:Admin"}
subjects: [{kind: ServiceAccount, name: web}]
---
apiVersion: example.com/v1
kind: Gauge
metadata: {name: pressure, namespace: %[1]s}
spec: {limit: 0.5, unit: "1e3", nothing: {}, list: [1, "1", true, "true"]}
`

// texts are values that are easily changed on the way through files and tools.
var texts = []string{
	"plain", "yes", "0x1f", "1.10", "line\nline\n", "  indented\n\ttabs\n", "trailing  \n\n", "${UNSET:=substituted} $HOME", "{{ .Values.x }}",
	"ünïcödé 日本", "", "---\na: b\n", "# no comment", "null", "~",
}

// fill creates the objects of the cluster.
func (o *origin) fill(t *testing.T) {
	t.Helper()
	o.Apply(t, ofCluster)
	o.HaveCondition(t, "", "Established", "crd/gauges.example.com")
	for number := range teams {
		o.Apply(t, team(fmt.Sprintf("team-%d", number)))
	}
}

// team returns the manifests of a namespace.
func team(namespace string) string {
	var manifests strings.Builder
	fmt.Fprintf(&manifests, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: %[1]s}}\n---", namespace)
	fmt.Fprintf(&manifests, ofTeam, namespace)
	for i := range 27 {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings-%d, namespace: %s}\ndata: {color: %q, file.txt: %q}\n",
			i, namespace, fmt.Sprint("color-", i), texts[i%len(texts)])
	}
	for i := range 10 {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: credentials-%d, namespace: %s}\nstringData: {user: app, password: %q}\n",
			i, namespace, texts[i%len(texts)])
	}
	return manifests.String()
}
