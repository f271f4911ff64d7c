// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

// holdings is the name of a namespace with objects of all kinds.
type holdings string

// values returns the values that the objects require, and more.
func (h holdings) values(more ...string) []string {
	return append([]string{
		fmt.Sprintf(`catalogs={"namespaces": [%q]}`, h),
		fmt.Sprintf(`environments={"sourceNamespaces": [%q], "targetNamespaces": ["%s-copy"]}`, h, h),
		`pipelines={"enabled": true}`,
	}, more...)
}

// namespaces returns the namespaces, which must exist before the installation.
func (h holdings) namespaces() string {
	return strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: holdings}
---
apiVersion: v1
kind: Namespace
metadata: {name: holdings-copy}
`, "holdings", string(h))
}

// holdingsManifest has objects of the kinds that users write. The workload is ready without a Pod.
const holdingsManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: holdings}
data: {BANNER: autumn}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: holdings}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: report, image: registry.example.com/report:1, envFrom: [{configMapRef: {name: settings}}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: holdings}
spec:
  destinationRef: {namespace: holdings, name: main}
  rules:
  - {name: all, scope: Cluster, resources: [storageclasses.storage.k8s.io]}
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: 1s}
---
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: holdings}
spec:
  sourceNamespace: holdings
  workloads:
  - {kind: CronJob, name: report}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: copy, namespace: holdings}
spec:
  catalogRef: {name: shop}
  targetNamespace: holdings-copy
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: record, namespace: holdings}
spec:
  suspend: true
  event: {}
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: holdings}
spec:
  instances: {resources: [cronjobs.batch]}
  debounce: 1s
  batch: {maxWait: 0s}
  sinks:
  - name: receiver
    http: {url: "https://%s", format: CloudEvents, caBundle: %s}
`

// fill creates objects of all kinds, and waits until the server has created those that users do not write.
func (s *testCluster) fill(t *testing.T, h holdings) *mirror {
	t.Helper()
	name := string(h)
	m := s.newMirror(t, name)
	m.expectWorking(t)
	s.Run(t, "patch", "gitdestination", "main", "-n", name, "--type=merge", "-p", `{"spec": {"accessPolicy": {"allowClusterRules": true}}}`)
	manifest := fmt.Sprintf(holdingsManifest, receiverAddress, base64.StdEncoding.EncodeToString([]byte(s.outside.authority)))
	s.Apply(t, strings.ReplaceAll(manifest, "holdings", name))
	s.Ready(t, name, "appcatalog/shop")
	s.Ready(t, "", "clusterwatchrule/"+name)
	s.Run(t, "wait", "environment/copy", "-n", name, "--for=jsonpath={.status.observedGeneration}=1", "--timeout=10m")
	sync := "/apis/configbutler.ai/v1alpha1/namespaces/" + name + "/environments/copy/sync"
	if _, err := s.Administrator.Feed(t.Context(), "{}", "create", "--raw", sync, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.Run(t, "wait", "environment/copy", "-n", name, "--for=condition=CatalogUpToDate", "--timeout=10m")
	s.Ready(t, "", "syncpipeline/"+name)
	return m
}

// settled waits until objects of all kinds exist and no longer change, and returns them.
func (s *testCluster) settled(t *testing.T) map[string]upgradetest.Object {
	t.Helper()
	var last map[string]upgradetest.Object
	var same int
	mirrortest.Eventually(t, "objects of all kinds exist and are unchanged", func(ctx context.Context) error {
		now, err := s.objects(ctx)
		if err != nil {
			return err
		}
		difference := cmp.Diff(last, now)
		last, same = now, same+1
		if difference != "" {
			same = 0
			return fmt.Errorf("changed: %s", difference)
		}
		if same < 5 {
			return fmt.Errorf("unchanged %d times", same)
		}
		for key, held := range now {
			if status, ok := held.Status.(map[string]any); ok && strings.HasPrefix(key, "SyncPipeline ") && status["pending"] != nil {
				return fmt.Errorf("%s has not sent everything", key)
			}
		}
		return nil
	})
	kinds := map[string]bool{}
	for key := range last {
		kind, _, _ := strings.Cut(key, " ")
		kinds[kind] = true
	}
	if len(kinds) != 14 {
		t.Fatalf("objects of %v, want all 14 kinds", slices.Sorted(maps.Keys(kinds)))
	}
	return last
}

// objects returns all objects of the server by kind, namespace and name.
func (s *testCluster) objects(ctx context.Context) (map[string]upgradetest.Object, error) {
	all, err := upgradetest.Objects(ctx, s.Administrator)
	for name, each := range all {
		// The client that sends requests continuously writes this annotation.
		delete(each.Metadata.Annotations, numberAnnotation)
		if len(each.Metadata.Annotations) == 0 {
			each.Metadata.Annotations = nil
		}
		all[name] = each
	}
	return all, err
}

// unchanged waits until all objects are equal to those before.
func (s *testCluster) unchanged(t *testing.T, before map[string]upgradetest.Object, except ...cmp.Option) {
	t.Helper()
	mirrortest.Eventually(t, "all objects are unchanged", func(ctx context.Context) error {
		now, err := s.objects(ctx)
		if difference := cmp.Diff(before, now, except...); err == nil && difference != "" {
			err = fmt.Errorf("objects differ (- before, + now):\n%s", difference)
		}
		return err
	})
}
