// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// direct is an installation with direct admission.
type direct struct {
	*testCluster
	// segment is the secret segment of the webhook's path.
	segment string
}

// directly creates the Secret with the segment, after checking the errors of helm without it.
func (s *testCluster) directly(t *testing.T) *direct {
	t.Helper()
	d := &direct{testCluster: s, segment: strings.Repeat("0123456789abcdef", 4)}
	d.refused(t, "the Secret segment with segment, of attribution.admission.segmentSecret, cannot be read in the namespace "+namespace)
	d.write(t, "short")
	d.refused(t, "must have, as segment, a line of at least 32 letters, digits and -._~")
	d.write(t, d.segment)
	return d
}

func (d *direct) value() string {
	return `attribution={"admission": {"mode": "direct", "segmentSecret": "segment"}}`
}

func (d *direct) write(t *testing.T, segment string) {
	t.Helper()
	d.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: segment, namespace: %s}, stringData: {segment: %q}}",
		namespace, segment+"\n"))
}

// refused expects helm install to fail with a message.
func (d *direct) refused(t *testing.T, message string) {
	t.Helper()
	_, err := d.command(t.Context(), "", d.helm, "install", "slipstream", chart, "-n", namespace, "--set-json", d.value())
	if err == nil || !strings.Contains(err.Error(), message) {
		t.Fatalf("helm did not fail with %q: %v", message, err)
	}
}

// waitForWebhook waits until kube-apiserver trusts the server in the webhook, and checks the webhook's Service.
func (d *direct) waitForWebhook(t *testing.T) {
	t.Helper()
	webhook := func(field string) string {
		return d.Run(t, "get", "validatingwebhookconfiguration/slipstream-attribution", "-o", "jsonpath={.webhooks[0].clientConfig."+field+"}")
	}
	address := d.address(t)
	mirrortest.Eventually(t, "the bundle of the webhook verifies the server", func(ctx context.Context) error {
		return vouches(ctx, webhook("caBundle"), address)
	})
	want := fmt.Sprintf("%s/slipstream:443/process-validating-webhook/%s", namespace, d.segment)
	service := webhook("service.namespace") + "/" + webhook("service.name") + ":" + webhook("service.port") + webhook("service.path")
	if service != want {
		t.Errorf("service of the webhook = %s, want %s", service, want)
	}
	// As documented in the page on security. Users who can read the release's Secret can read that of the segment, too.
	if manifest := d.do(t, "", d.helm, "get", "manifest", "slipstream", "-n", namespace); !strings.Contains(manifest, d.segment) {
		t.Error("manifest of the release lacks the path, unlike the page on security says")
	}
}

// person is a user with the role edit in the mirrored namespace.
type person struct {
	*mirror
	name    string
	kubectl devcluster.Kubectl
}

func (m *mirror) person(t *testing.T, name string) *person {
	t.Helper()
	m.Run(t, "create", "rolebinding", name, "-n", m.namespace, "--clusterrole=edit", "--user="+name)
	user, err := m.User(name)
	if err != nil {
		t.Fatal(err)
	}
	return &person{mirror: m, name: name, kubectl: m.Kubectl(user)}
}

// authorAndSignal is the format of git log with the author of a change and its signal.
const authorAndSignal = "%an, %(trailers:key=X-ConfigButler-Attribution,valueonly,separator=)"

// waitForAuthor waits until a change is attributed by admission. The first changes may not be, because failed reviews are ignored.
func (p *person) waitForAuthor(t *testing.T) {
	t.Helper()
	file := "cluster/core/v1/configmaps/" + p.namespace + "/" + p.name + ".yaml"
	var value, by string
	mirrortest.Eventually(t, "a change is attributed to "+p.name, func(ctx context.Context) error {
		if value != "" {
			content, err := p.gitOutput(ctx, "show", "main:"+file)
			if err != nil || !strings.Contains(content, value+"\n") {
				return errors.Join(fmt.Errorf("%s is not in Git yet", value), err)
			}
			by, err = p.gitOutput(ctx, "log", "-1", "--format="+authorAndSignal, "main", "--", file)
			if err != nil || strings.TrimSpace(by) == p.name+", admission" {
				return err
			}
		}
		p.changes++
		value = fmt.Sprintf("change-%d", p.changes)
		_, err := p.kubectl.Feed(ctx, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {value: %s}}",
			p.name, p.namespace, value), "apply", "-f", "-")
		return errors.Join(fmt.Errorf("the last change was by %q", by), err)
	})
}
