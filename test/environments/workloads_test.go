// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/test/testkit/people"
)

const strategicMerge = types.StrategicMergePatchType

// shop is a source with two workloads and their dependencies: api uses almost all of them, worker one ConfigMap.
const shop = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pages}, data: {index.html: hello}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: jobs}, data: {every: hour}}
---
{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: production-token-1}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson,
  stringData: {.dockerconfigjson: '{"auths":{}}'}}
---
apiVersion: v1
kind: Service
metadata: {name: api}
spec: {selector: {app: api}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 1
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      imagePullSecrets: [{name: pull}]
      initContainers:
      - {name: setup, image: 'shop/setup:1', envFrom: [{secretRef: {name: setup}}]}
      containers:
      - name: main
        image: shop/api:1
        ports: [{name: http, containerPort: 8080}]
        envFrom: [{configMapRef: {name: settings}}]
        resources: {limits: {memory: 64Mi}}
        volumeMounts: [{name: pages, mountPath: /pages}]
      volumes:
      - {name: pages, projected: {sources: [{configMap: {name: pages}}]}}
---
` + worker

const worker = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: main, image: 'shop/worker:1', envFrom: [{configMapRef: {name: jobs}}]}]}
---
`

// setImage has ann change an image in the source.
func (c *fixture) setImage(t *testing.T, deployment, image string) {
	t.Helper()
	patch(t, c.ann, c.source, deployment, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

// patch patches a Deployment.
func patch(t *testing.T, by *people.Person, namespace, deployment, patch string) {
	t.Helper()
	_, err := by.Client.AppsV1().Deployments(namespace).Patch(t.Context(), deployment, strategicMerge, []byte(patch),
		metav1.PatchOptions{FieldManager: by.Name})
	if err != nil {
		t.Fatal(err)
	}
}
