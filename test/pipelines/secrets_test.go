// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// secretText is the content of objects that must not be sent.
	secretText = "never-leaves-the-cluster"
	// oldToken and newToken are credentials of receivers, which only these may get.
	oldToken, newToken = "old-token-of-a-receiver", "new-token-of-a-receiver"
)

// expectNoContent expects no call to have the content of objects, or copies of it in annotations.
func (r *receiver) expectNoContent(t *testing.T) {
	t.Helper()
	for _, call := range r.Calls() {
		encoded := base64.StdEncoding.EncodeToString([]byte(secretText))
		for _, text := range []string{secretText, encoded, "last-applied", "managedFields", `"data"`} {
			if bytes.Contains(call.Body, []byte(text)) || strings.Contains(fmt.Sprint(call.Header), text) {
				t.Errorf("%s received %q: %s", r.format, text, call.Body)
			}
		}
	}
}

// hiding is a Secret with annotations of kubectl and other tools that contain its content.
const hiding = `
apiVersion: v1
kind: Secret
metadata:
  name: hiding
  namespace: %[1]s
  labels: {tier: hidden}
  annotations:
    helm.sh/resource-policy: keep
    note: ` + secretText + `
    objectset.rio.cattle.io/applied: '{"stringData":{"password":"` + secretText + `"}}'
    kapp.k14s.io/original: '{"stringData":{"password":"` + secretText + `"}}'
    configsync.gke.io/declared-fields: '{"stringData":{"password":"` + secretText + `"}}'
    banzaicloud.com/last-applied: '{"stringData":{"password":"` + secretText + `"}}'
stringData: {password: ` + secretText + `}
`

// testSecretContent tests a pipeline for Secrets, in every format.
func (s *testCluster) testSecretContent(t *testing.T) {
	a := s.newAudience(t, "discreet")
	a.readyPipeline(t, "debounce: 0s\n  batch: {maxWait: 0s}", noDefinitions, "instances: {resources: [secrets]}", a.allSinks())
	if _, err := s.admin.Kubectl.Feed(t.Context(), fmt.Sprintf(hiding, a.name), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for format, r := range a.receivers {
		mirrortest.Eventually(t, fmt.Sprintf("%s has the Secret", format), func(context.Context) error {
			if !slices.Contains(r.Known(), "discreet/v1/Secret/hiding") {
				return fmt.Errorf("receiver has %q", r.Known())
			}
			return nil
		})
		object, _ := r.Object("discreet/v1/Secret/hiding")
		if got := fmt.Sprint(object.Labels, object.Annotations); got != "map[tier:hidden] map[helm.sh/resource-policy:keep]" {
			t.Errorf("%s received %s", format, got)
		}
	}
	a.mustSync(t, full)
}

// credential is a Role and RoleBinding that allow the server to read the Secret with a receiver's credentials.
const credential = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: credentials, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [receiver], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: credentials, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: credentials}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "` + people.Server + `"}]
---
`

// credentials applies the Secret with this content.
func (c *fixture) credentials(t *testing.T, content string) {
	t.Helper()
	c.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: receiver, namespace: %s}, stringData: {%s}}", c.name, content))
}

// testCredentials tests a receiver that requires credentials, which are missing at first, are replaced, and change their type.
func (s *testCluster) testCredentials(t *testing.T) {
	c := s.newFixture(t, "authenticated")
	c.Apply(t, fmt.Sprintf(credential, c.name))
	r := receive(t, dotAI)
	r.Require(oldToken)
	c.define(t, widgets)
	c.pipeline(t, prompt, noDefinitions, sinks(r.sink("index", fmt.Sprintf("secretRef: {namespace: %s, name: receiver}", c.name))))
	c.create(t, "first")
	c.waitForFailure(t, "index", "Secret "+c.name+"/receiver")
	c.credentials(t, "other: key")
	c.waitForFailure(t, "index", "neither token nor username and password")
	c.credentials(t, "token: "+oldToken)
	r.next(t, 1)

	r.Require(newToken)
	c.create(t, "second")
	c.waitForFailure(t, "index", "401")
	if faults := r.Faults(); len(faults) == 0 {
		t.Error("the old token was accepted")
	}
	c.credentials(t, "token: "+newToken)
	c.mustSync(t, all)
	r.next(t, 1)

	r.RequireBasic("user", newToken)
	c.Delete(t, c.name, "secret/receiver")
	c.credentials(t, "username: user, password: "+newToken)
	c.create(t, "third")
	r.next(t, 1)
	c.expectNotLogged(t, oldToken, newToken)
}

// waitForFailure waits until the status of a sink has an error that contains a text.
func (c *fixture) waitForFailure(t *testing.T, name, why string) {
	t.Helper()
	c.waitForSink(t, name, "fails: "+why, func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.LastError == nil || !strings.Contains(sink.LastError.Message, why) {
			return fmt.Errorf("lastError = %+v", sink.LastError)
		}
		return nil
	})
}

// expectNotLogged expects texts in no log, API object or file of the server.
func (c *fixture) expectNotLogged(t *testing.T, texts ...string) {
	t.Helper()
	log, err := os.ReadFile(c.Env(devcluster.EnvServerLog))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]byte{"the log": log}
	places["the API"] = []byte(c.Run(t, "get", "pipe,syncpolicy", "-o", "yaml") + c.Run(t, "get", "events", "-A", "-o", "yaml"))
	err = filepath.WalkDir(c.Env(devcluster.EnvDataDir), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			places[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // Files may be deleted concurrently.
		t.Fatal(err)
	}
	for place, content := range places {
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				t.Errorf("%s contains %s", place, text)
			}
		}
	}
}

// testCertificates tests a receiver whose certificate has an unknown authority.
func (s *testCluster) testCertificates(t *testing.T) {
	c := s.newFixture(t, "certified")
	r := receive(t, whisperer, receivertest.TLS())
	c.define(t, widgets)
	c.pipeline(t, prompt, noDefinitions, sinks(r.sink("index")))
	c.create(t, "first")
	c.waitForFailure(t, "index", "certificate")
	if calls := r.Calls(); len(calls) > 0 {
		t.Errorf("received %q", summarize(t, calls))
	}
	bundle := base64.StdEncoding.EncodeToString(r.CABundle())
	c.readyPipeline(t, prompt, noDefinitions, sinks(r.sink("index", "caBundle: "+bundle)))
	r.waitForChanges(t, "+first")

	_, err := c.apply(t.Context(), c.eve, prompt, noDefinitions, sinks(r.sink("index", "caBundle: bm8gY2VydGlmaWNhdGU=")))
	if err == nil {
		t.Fatal("invalid certificate was accepted")
	}
	contains(t, err.Error(), "spec.sinks[0].http.caBundle")
}

// testPermissions has users create pipelines for objects that they cannot read.
func (s *testCluster) testPermissions(t *testing.T) {
	c := s.newFixture(t, "entitled")
	r := receive(t, whisperer)
	c.define(t, widgets)
	secretRef := r.sink("index", "secretRef: {namespace: kube-system, name: other-secret}")
	job := "{name: run, job: {namespace: kube-system, template: {spec: {template: {spec: {" +
		"containers: [{name: main, image: run}], restartPolicy: Never}}}}}}"
	for _, test := range []struct {
		by        *people.Person
		sinks     string
		lines     []string
		sentences []string
	}{
		{s.mallory, "", []string{noInstances}, []string{`"mallory" cannot list customresourcedefinitions.apiextensions.k8s.io`}},
		{s.mallory, "", []string{noDefinitions}, []string{`"mallory" cannot list widgets.entitled.example.com`, "spec.instances.resources"}},
		{s.mallory, "", []string{noDefinitions, "instances: {}"}, []string{`"mallory" cannot list`, "spec.instances.resources"}},
		{s.eve, job, []string{noDefinitions}, []string{`"eve" cannot create jobs.batch`, "kube-system", "spec.sinks[0].job.namespace"}},
	} {
		_, err := c.apply(t.Context(), test.by, append(test.lines, sinks(cmp.Or(test.sinks, r.sink("index"))))...)
		if err == nil {
			t.Fatalf("%s can create a pipeline with %q", test.by.Name, test.lines)
		}
		contains(t, err.Error(), append(test.sentences, "(Forbidden)")...)
	}

	s.Apply(t, people.Everywhere("widget-readers", s.mallory.Name)+fmt.Sprintf(widgetReaders, c.group, "list"))
	_, err := c.apply(t.Context(), s.mallory, noDefinitions, sinks(secretRef))
	if err == nil {
		t.Fatal("mallory can use a Secret that she cannot read")
	}
	contains(t, err.Error(), `"mallory" cannot get`, "secrets", "kube-system", "spec.sinks[0].http.secretRef", "(Forbidden)")
	if calls := r.Calls(); len(calls) > 0 {
		t.Errorf("received %q", summarize(t, calls))
	}

	mirrortest.Eventually(t, "mallory can create a pipeline for widgets", func(ctx context.Context) error {
		return s.mallory.Try.Apply(ctx, "", c.ofLines(prompt, noDefinitions, sinks(r.sink("index"))))
	})
	c.create(t, "first")
	r.waitForChanges(t, "+first")
	carol := s.person(t, "carol").Own.ConfigbutlerV1alpha1().SyncPipelines()
	_, err = carol.Sync(t.Context(), c.name, &v1alpha1.PipelineSync{}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("sync request without permission: %v", err)
	}
}

// widgetReaders is a role for verbs on the widgets of one fixture.
const widgetReaders = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widget-readers}
rules: [{apiGroups: [%s], resources: [widgets], verbs: [%s]}]
`
