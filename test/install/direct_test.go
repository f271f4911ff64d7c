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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// direct is an installation that kube-apiserver asks about changes without its aggregator.
type direct struct {
	*stage
	// segment is the secret end of the path.
	segment string
}

// directly makes the Secret for that, after helm has said what it wants of it.
func (s *stage) directly(t *testing.T) *direct {
	t.Helper()
	d := &direct{stage: s, segment: strings.Repeat("0123456789abcdef", 4)}
	d.refused(t, "the Secret segment with segment, of attribution.admission.segmentSecret, cannot be read in the namespace "+namespace)
	d.write(t, "short")
	d.refused(t, "must have, as segment, a line of 32 letters, digits and -._~ or more")
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

// refused wants helm to install nothing and to say why.
func (d *direct) refused(t *testing.T, says string) {
	t.Helper()
	_, err := d.command(t.Context(), "", d.helm, "install", "slipstream", chart, "-n", namespace, "--set-json", d.value())
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("helm does not refuse with %q: %v", says, err)
	}
}

// asks waits until kube-apiserver asks the server itself and trusts it.
func (d *direct) asks(t *testing.T) {
	t.Helper()
	webhook := func(field string) string {
		return d.Run(t, "get", "validatingwebhookconfiguration/slipstream-attribution", "-o", "jsonpath={.webhooks[0].clientConfig."+field+"}")
	}
	address := d.address(t)
	mirrortest.Eventually(t, "the authorities in the webhook vouch for the server", func(ctx context.Context) error {
		return vouches(ctx, webhook("caBundle"), address)
	})
	want := fmt.Sprintf("%s/slipstream:443/process-validating-webhook/%s", namespace, d.segment)
	service := webhook("service.namespace") + "/" + webhook("service.name") + ":" + webhook("service.port") + webhook("service.path")
	if service != want {
		t.Errorf("kube-apiserver asks %s, want %s", service, want)
	}
	// As the page on security says. Whoever may read the release's Secret may read that of the segment.
	if manifest := d.do(t, "", d.helm, "get", "manifest", "slipstream", "-n", namespace); !strings.Contains(manifest, d.segment) {
		t.Error("what helm keeps of the release does not have the path: the page on security says that it does")
	}
}

// person is somebody who may edit what is mirrored.
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

// authorAndSignal is how git is to print who made a change, and what told so.
const authorAndSignal = "%an, %(trailers:key=X-ConfigButler-Attribution,valueonly,separator=)"

// isNamed waits until a change has the name of who made it, by kube-apiserver's question. The first ones may not: a question
// that cannot be asked yet is passed over.
func (p *person) isNamed(t *testing.T) {
	t.Helper()
	file := "cluster/core/v1/configmaps/" + p.namespace + "/" + p.name + ".yaml"
	var value, by string
	mirrortest.Eventually(t, "a change has the name of "+p.name, func(ctx context.Context) error {
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
