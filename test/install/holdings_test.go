// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/mirrortest"
)

// holdings are a namespace with objects of all kinds, the name of which is that of the namespace.
type holdings string

// values let the server do what the holdings need, and what else is wanted.
func (h holdings) values(more ...string) []string {
	return append([]string{
		fmt.Sprintf(`catalogs={"namespaces": [%q]}`, h),
		fmt.Sprintf(`environments={"sourceNamespaces": [%q], "targetNamespaces": ["%s-copy"]}`, h, h),
		`pipelines={"enabled": true}`,
	}, more...)
}

// namespaces have to be there before the server gets rights in them.
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

// holdingsManifest makes objects of those kinds that people write. The workload is one that is well without a Pod.
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

// fill has the server hold objects of all kinds, of which it makes those that people do not write.
func (s *stage) fill(t *testing.T, h holdings) *mirror {
	t.Helper()
	name := string(h)
	m := s.newMirror(t, name)
	m.goesOn(t)
	s.Run(t, "patch", "gitdestination", "main", "-n", name, "--type=merge", "-p", `{"spec": {"accessPolicy": {"allowClusterRules": true}}}`)
	manifest := fmt.Sprintf(holdingsManifest, receiverAddress, base64.StdEncoding.EncodeToString([]byte(s.outside.authority)))
	s.Apply(t, strings.ReplaceAll(manifest, "holdings", name))
	s.Ready(t, "appcatalog/shop", "-n", name)
	s.Ready(t, "clusterwatchrule/"+name)
	s.Run(t, "wait", "environment/copy", "-n", name, "--for=jsonpath={.status.observedGeneration}=1", "--timeout=180s")
	sync := "/apis/configbutler.ai/v1alpha1/namespaces/" + name + "/environments/copy/sync"
	if _, err := s.Administrator.Feed(t.Context(), "{}", "create", "--raw", sync, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.Run(t, "wait", "environment/copy", "-n", name, "--for=condition=CatalogUpToDate", "--timeout=180s")
	s.Ready(t, "syncpipeline/"+name)
	return m
}

// settled waits until there are objects of all kinds and none of them changes any more, and returns them.
func (s *stage) settled(t *testing.T) map[string]object {
	t.Helper()
	var last map[string]object
	var same int
	mirrortest.Eventually(t, "objects of all kinds are there and stay as they are", func(ctx context.Context) error {
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
	if len(kinds) != 12 {
		t.Fatalf("there are objects of %v, want all 12 kinds", slices.Sorted(maps.Keys(kinds)))
	}
	return last
}

// object is what must stay of an object.
type object struct {
	Metadata struct {
		UID               string            `json:"uid"`
		CreationTimestamp string            `json:"creationTimestamp"`
		Generation        int64             `json:"generation"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		Finalizers        []string          `json:"finalizers"`
	} `json:"metadata"`
	Spec   any `json:"spec"`
	Status any `json:"status"`
}

// objects are all objects that the server has, by kind, namespace and name.
func (s *stage) objects(ctx context.Context) (map[string]object, error) {
	kinds, err := s.Administrator.Run(ctx, "api-resources", "--api-group=configbutler.ai", "--verbs=list", "--output=name")
	if err != nil {
		return nil, err
	}
	out, err := s.Administrator.Run(ctx, "get", strings.Join(strings.Fields(kinds), ","), "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	all := map[string]object{}
	for _, item := range list.Items {
		var name struct {
			Kind     string `json:"kind"`
			Metadata struct{ Namespace, Name string }
		}
		var content object
		if err := json.Unmarshal(item, &name); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(item, &content); err != nil {
			return nil, err
		}
		// Requests that are made all the time write it.
		delete(content.Metadata.Annotations, numberAnnotation)
		if len(content.Metadata.Annotations) == 0 {
			content.Metadata.Annotations = nil
		}
		content.Status = lasting(content.Status)
		all[name.Kind+" "+name.Metadata.Namespace+"/"+name.Metadata.Name] = content
	}
	return all, nil
}

// passing are the fields of a status that tell what the process does that serves now, and when it began to.
var passing = []string{"lastTransitionTime", "lastSeedTime", "lastListTime", "lastRetentionTime", "leaseHolder", "records"}

// lasting is what of a status has to outlive the process. Conditions have no order: a server that starts does not know yet
// how things are, and says so until it does.
func lasting(status any) any {
	switch value := status.(type) {
	case map[string]any:
		for _, field := range passing {
			delete(value, field)
		}
		for name, field := range value {
			value[name] = lasting(field)
		}
		if conditions, ok := value["conditions"].([]any); ok {
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(conditionType(a), conditionType(b)) })
		}
	case []any:
		for index, element := range value {
			value[index] = lasting(element)
		}
	}
	return status
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	return fmt.Sprint(fields["type"])
}

// unchanged waits until all objects are as they were.
func (s *stage) unchanged(t *testing.T, before map[string]object, except ...cmp.Option) {
	t.Helper()
	mirrortest.Eventually(t, "all objects are as they were", func(ctx context.Context) error {
		now, err := s.objects(ctx)
		if difference := cmp.Diff(before, now, except...); err == nil && difference != "" {
			err = fmt.Errorf("they differ (- before, + now):\n%s", difference)
		}
		return err
	})
}
