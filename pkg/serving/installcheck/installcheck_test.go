// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package installcheck_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/serving/installcheck"
)

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name string
		// spoil breaks what is good in a cluster.
		spoil func(*cluster)
		want  []string
	}{
		{
			name: "all is good",
			want: []string{
				"ok       kube-apiserver: v1.37.1 responds",
				"ok       APIService: v1alpha1.configbutler.ai is available, served by the Service slipstream-system/slipstream",
				"ok       certificate: the authorities that kube-apiserver trusts are valid until ",
				"ok       discovery: it has all ",
				"ok       objects: the objects of all ",
				"ok       controllers: slipstream-0 leads",
				"ok       attribution: kube-apiserver reports changes through the webhook slipstream-attribution",
			},
		},
		{
			name:  "not registered",
			spoil: func(c *cluster) { c.remove(apiServices, "", apiServiceName) },
			want:  []string{"FAILED   APIService: v1alpha1.configbutler.ai is not registered", "next: run helm upgrade", "ok       controllers"},
		},
		{
			name:  "served by definitions",
			spoil: func(c *cluster) { c.set(apiServices, "", apiServiceName, nil, "spec", "service") },
			want: []string{
				"FAILED   APIService: APIService v1alpha1.configbutler.ai is served by CustomResourceDefinitions of this group and version, " +
					"not by this server",
				"next: delete them, or remove the label kube-aggregator.kubernetes.io/automanaged from the APIService and apply it again",
			},
		},
		{
			name:  "served from another namespace",
			spoil: func(c *cluster) { c.set(apiServices, "", apiServiceName, "other", "spec", "service", "namespace") },
			want:  []string{"FAILED   APIService: v1alpha1.configbutler.ai is served from the namespace other, not from slipstream-system"},
		},
		{
			name: "no Pod is ready",
			spoil: func(c *cluster) {
				c.set(apiServices, "", apiServiceName, []any{map[string]any{
					"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "no endpoints",
				}}, "status", "conditions")
			},
			want: []string{
				"FAILED   APIService: not available: MissingEndpoints: no endpoints", "next: no Pod is ready: kubectl -n slipstream-system get pods",
			},
		},
		{
			name:  "not checked yet",
			spoil: func(c *cluster) { c.set(apiServices, "", apiServiceName, nil, "status") },
			want:  []string{"FAILED   APIService: kube-apiserver has not checked it yet"},
		},
		{
			name:  "no authority is trusted",
			spoil: func(c *cluster) { c.set(apiServices, "", apiServiceName, nil, "spec", "caBundle") },
			want:  []string{"FAILED   certificate: caBundle: ", "next: the server writes it, and its log says why it failed"},
		},
		{
			name:  "every certificate is trusted",
			spoil: func(c *cluster) { c.set(apiServices, "", apiServiceName, true, "spec", "insecureSkipTLSVerify") },
			want:  []string{"FAILED   certificate: kube-apiserver trusts any certificate"},
		},
		{
			name:  "the authority has expired",
			spoil: func(c *cluster) { c.clock.SetTime(c.clock.Now().AddDate(20, 0, 0)) },
			want:  []string{"FAILED   certificate: the last authority that kube-apiserver trusts expired on "},
		},
		{
			name:  "a kind is missing",
			spoil: func(c *cluster) { c.discovery.Resources[0].APIResources = c.discovery.Resources[0].APIResources[1:] },
			want:  []string{"FAILED   discovery: it lacks AppCatalog", "next: the server and this check have different versions"},
		},
		{
			name: "a list is forbidden",
			spoil: func(c *cluster) {
				c.refuse("list", "environments", apierrors.NewForbidden(schema.GroupResource{Resource: "environments"}, "", errors.New("no")))
			},
			want: []string{"FAILED   objects: listing environments: ", "next: allow this account to list them"},
		},
		{
			name:  "a store that cannot be read",
			spoil: func(c *cluster) { c.refuse("list", "environments", apierrors.NewInternalError(errors.New("disk"))) },
			want:  []string{"FAILED   objects: listing environments: ", "next: kubectl -n slipstream-system logs deploy/slipstream"},
		},
		{
			name:  "no replica has led yet",
			spoil: func(c *cluster) { c.remove(leases, "slipstream-system", "slipstream") },
			want:  []string{"FAILED   controllers: reading the Lease of the leader: "},
		},
		{
			name:  "no leader",
			spoil: func(c *cluster) { c.set(leases, "slipstream-system", "slipstream", "", "spec", "holderIdentity") },
			want:  []string{"FAILED   controllers: no replica leads"},
		},
		{
			name: "the leader is dead",
			spoil: func(c *cluster) {
				c.set(leases, "slipstream-system", "slipstream", now.Add(-time.Minute).Format(metav1.RFC3339Micro), "spec", "renewTime")
			},
			want: []string{"FAILED   controllers: slipstream-0 no longer leads: it renewed its Lease 1m0s ago"},
		},
		{
			name:  "no webhook",
			spoil: func(c *cluster) { c.remove(webhooks, "", "slipstream-attribution") },
			want:  []string{"ok       attribution: the webhook slipstream-attribution does not exist"},
		},
		{
			name: "a webhook that is not trusted",
			spoil: func(c *cluster) {
				c.set(webhooks, "", "slipstream-attribution", []any{map[string]any{"clientConfig": map[string]any{
					"service": map[string]any{"namespace": "slipstream-system", "name": "slipstream"},
				}}}, "webhooks")
			},
			want: []string{"FAILED   attribution: kube-apiserver does not trust the server that the webhook names"},
		},
		{
			name: "a webhook of another installation",
			spoil: func(c *cluster) {
				c.set(webhooks, "", "slipstream-attribution", []any{map[string]any{"clientConfig": map[string]any{
					"service": map[string]any{"namespace": "before", "name": "slipstream"}, "caBundle": "AAAA",
				}}}, "webhooks")
			},
			want: []string{
				"FAILED   attribution: kube-apiserver reports changes to the Service before/slipstream, not to the server in slipstream-system",
			},
		},
		{
			name:  "a webhook configuration without webhooks",
			spoil: func(c *cluster) { c.set(webhooks, "", "slipstream-attribution", []any{}, "webhooks") },
			want:  []string{"FAILED   attribution: kube-apiserver sends no admission reviews of changes: slipstream-attribution has no webhooks"},
		},
		{
			name: "a webhook at an address",
			spoil: func(c *cluster) {
				c.set(webhooks, "", "slipstream-attribution", []any{map[string]any{"clientConfig": map[string]any{
					"url": "https://slipstream.example.org/process-validating-webhook/secret",
				}}}, "webhooks")
			},
			want: []string{"ok       attribution: kube-apiserver reports changes through the webhook"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			if test.spoil != nil {
				test.spoil(c)
			}
			var out bytes.Buffer
			err := c.checkup(&out, 0).Run(t.Context())
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it says\n%s\nwant %q", &out, want)
				}
			}
			if failed := strings.Contains(out.String(), "FAILED"); failed != errors.Is(err, installcheck.ErrFailed) {
				t.Errorf("error %v after\n%s", err, &out)
			}
		})
	}
}

func TestWaitsForGoodAnswers(t *testing.T) {
	c := newCluster(t)
	asked := 0
	c.objects.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		c.clock.Step(time.Second)
		return asked < 20, nil, apierrors.NewServiceUnavailable("not yet")
	})
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- c.checkup(&out, time.Minute).Run(t.Context()) }()
	if err := c.stepUntil(done); err != nil {
		t.Errorf("%v after\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "waiting  controllers: ") ||
		!strings.Contains(out.String(), "ok       controllers: slipstream-0 leads") {
		t.Errorf("it says\n%s", &out)
	}
}

func TestStopsWaitingAtTheLimit(t *testing.T) {
	c := newCluster(t)
	c.remove(apiServices, "", apiServiceName)
	var out bytes.Buffer
	done := make(chan error, 1)
	begin := c.clock.Now()
	go func() { done <- c.checkup(&out, 30*time.Second).Run(t.Context()) }()
	if err := c.stepUntil(done); !errors.Is(err, installcheck.ErrFailed) {
		t.Errorf("error %v after\n%s", err, &out)
	}
	if waited := c.clock.Since(begin); waited < 30*time.Second || waited > time.Minute {
		t.Errorf("it waited for %s, want 30s", waited)
	}
}
