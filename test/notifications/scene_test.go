// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// prompt sends each notification immediately.
const prompt = "digestWindow: 0s\n  maxPerMinute: 60"

// sinkOf is the manifest of a sink: its name, namespace, and lines of its spec.
const sinkOf = `
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: %s, namespace: %s}
spec:
  %s
`

// sink has jane apply a sink, and waits until it collects notifications.
func (s *testCluster) sink(t *testing.T, namespace, name string, lines ...string) {
	t.Helper()
	s.sinkBy(t, s.jane, namespace, name, lines...)
}

func (s *testCluster) sinkBy(t *testing.T, by *people.Person, namespace, name string, lines ...string) {
	t.Helper()
	by.Apply(t, fmt.Sprintf(sinkOf, name, namespace, strings.Join(lines, "\n  ")))
	s.Ready(t, namespace, "sink/"+name)
}

// status waits until a check accepts the status of a sink.
func (s *testCluster) status(t *testing.T, namespace, name, what string, is func(*v1alpha1.NotificationSinkStatus) bool) *v1alpha1.NotificationSinkStatus {
	t.Helper()
	var status *v1alpha1.NotificationSinkStatus
	mirrortest.Eventually(t, fmt.Sprintf("sink %s/%s %s", namespace, name, what), func(ctx context.Context) error {
		sink, err := s.admin.Own.ConfigbutlerV1alpha1().NotificationSinks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if status = &sink.Status; !is(status) {
			text, _ := json.Marshal(status) // It has no values that cannot be encoded.
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	return status
}

// condition waits until a condition of a sink has a reason, and returns its message.
func (s *testCluster) condition(t *testing.T, namespace, name, kind, reason string) (message string) {
	t.Helper()
	s.status(t, namespace, name, "has the condition "+kind+" with the reason "+reason, func(status *v1alpha1.NotificationSinkStatus) bool {
		for _, c := range status.Conditions {
			if c.Type == kind && c.Reason == reason {
				message = c.Message
				return true
			}
		}
		return false
	})
	return message
}

// delivered waits until nothing is pending and a number of notifications were delivered.
func (s *testCluster) delivered(t *testing.T, namespace, name string, notifications int64) {
	t.Helper()
	s.status(t, namespace, name, fmt.Sprintf("has delivered %d", notifications), func(status *v1alpha1.NotificationSinkStatus) bool {
		return status.Pending == 0 && status.Notifications >= notifications
	})
}

// fixture is a team with a catalog named shop of a source, and environments in targets.
type fixture struct {
	*testCluster
	source, team, target string
}

// workload is a Deployment with its name and image.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[3]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: '%[2]s', resources: {limits: {memory: 64Mi}}}]}
---
`

func (s *testCluster) newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	c := &fixture{testCluster: s, source: name + "-production", team: name, target: name + "-target"}
	for _, namespace := range []string{c.source, c.team, c.target} {
		s.CreateNamespace(t, namespace)
	}
	c.jane.Apply(t, fmt.Sprintf(workload, "web", "shop/web:1", c.source)+fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: %s}
spec: {sourceNamespace: %s, secrets: Shared, workloads: [{kind: Deployment, name: web}]}
`, c.team, c.source))
	s.Ready(t, c.team, "appcatalog/shop")
	return c
}

// environment has jane apply an environment with lines of its spec.
func (c *fixture) environment(t *testing.T, name, target string, lines ...string) {
	t.Helper()
	c.jane.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: %s, namespace: %s}
spec:
  targetNamespace: %s
  catalogRef: {name: shop}
  %s
`, name, c.team, target, strings.Join(lines, "\n  ")))
}

// request has jane create a subresource of an environment.
func (c *fixture) request(t *testing.T, environment, subresource string) {
	t.Helper()
	path := "/apis/configbutler.ai/v1alpha1/namespaces/" + c.team + "/environments/" + environment + "/" + subresource
	if _, err := c.jane.Try.Post(t.Context(), path, "{}"); err != nil {
		t.Fatal(err)
	}
}

// image has jane change the image of the workload in the source.
func (c *fixture) image(t *testing.T, image string) {
	t.Helper()
	c.setImage(t, c.source, image)
}

func (c *fixture) setImage(t *testing.T, namespace, image string) {
	t.Helper()
	c.jane.Apply(t, fmt.Sprintf(workload, "web", image, namespace))
}

// waitFor waits until a check of an environment succeeds.
func (c *fixture) waitFor(t *testing.T, name, what string, is func(*v1alpha1.Environment) bool) {
	t.Helper()
	mirrortest.Eventually(t, "environment "+name+" "+what, func(ctx context.Context) error {
		e, err := c.jane.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !is(e) {
			text, _ := json.Marshal(e.Status)
			err = fmt.Errorf("%s", text)
		}
		return err
	})
}

// sync has jane sync an environment, when its catalog has something to offer.
func (c *fixture) sync(t *testing.T, name string) {
	t.Helper()
	latest := int64(0)
	c.waitFor(t, name, "has observed the catalog", func(e *v1alpha1.Environment) bool {
		latest = e.Status.LatestRevision
		return e.Status.ObservedGeneration == e.Generation && e.Status.LatestRevision > 0
	})
	c.request(t, name, "sync")
	c.waitFor(t, name, "is synced", func(e *v1alpha1.Environment) bool { return e.Status.AppliedRevision >= latest })
}
