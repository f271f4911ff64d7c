// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

const hidden = "correct-horse"

func secret(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	return object(t, "{apiVersion: v1, kind: Secret, metadata: {name: settings, namespace: twin}, stringData: {password: "+hidden+"}}")
}

// answers are responses of API servers, with the expected message for a ConfigMap and for a Secret.
var answers = map[string]struct {
	status         *metav1.Status
	object, secret []string
}{
	"fields": {
		status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "it is invalid",
			metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[key]", Message: `Invalid value: "` + hidden + `": no`},
			metav1.StatusCause{Type: metav1.CauseTypeFieldValueRequired, Field: "metadata.name", Message: "Required value"}),
		[]string{`data[key]: Invalid value: "` + hidden + `": no`, "metadata.name: Required value"},
		[]string{"data[key]: is not valid, or cannot be changed", "metadata.name: is required"},
	},
	"quota": {
		status(http.StatusForbidden, metav1.StatusReasonForbidden,
			`configmaps "settings" is forbidden: exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, `+
				`limited: count/configmaps=3`),
		[]string{": exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"},
		[]string{": exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"},
	},
	"policy": {
		status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "whatever",
			metav1.StatusCause{Message: "ValidatingAdmissionPolicy 'short' with binding 'all' denied request: it is " + hidden}),
		[]string{": ValidatingAdmissionPolicy 'short' with binding 'all' denied request: it is " + hidden},
		[]string{": ValidatingAdmissionPolicy 'short' with binding 'all' denied request"},
	},
	"webhook": {
		status(http.StatusBadRequest, "", `admission webhook "w.example.com" denied the request: `+hidden),
		[]string{`: admission webhook "w.example.com" denied the request: ` + hidden},
		[]string{`: admission webhook "w.example.com" denied the request`},
	},
	"strict": {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, `strict decoding error: unknown field "spec.foo"`),
		[]string{`spec.foo: strict decoding error: unknown field "spec.foo"`},
		[]string{"spec.foo: the API server rejects the request; its message may quote the Secret and is left out"},
	},
	"schema": {
		status(http.StatusInternalServerError, "",
			"failed to create typed patch object (twin/settings; v1, Kind=ConfigMap): errors:\n"+
				"  .data.a: expected string, got "+hidden+"\n  .foo: field not declared in schema"),
		[]string{"data.a: expected string, got " + hidden, "foo: field not declared in schema"},
		[]string{"data.a: does not fit the schema", "foo: does not fit the schema"},
	},
	"conversion": {
		status(http.StatusInternalServerError, "",
			"failed to convert new object (twin/settings; /v1, Kind=ConfigMap) to proper version: error decoding from json: "+hidden),
		[]string{": error decoding from json: " + hidden},
		[]string{": the API server rejects the request; its message may quote the Secret and is left out"},
	},
	"rights": {
		status(http.StatusForbidden, metav1.StatusReasonForbidden,
			`secrets "settings" is forbidden: User "eve" cannot patch resource "secrets" in API group "" in the namespace "twin"`),
		[]string{`: User "eve" cannot patch resource "secrets" in API group "" in the namespace "twin"`},
		[]string{`: User "eve" cannot patch resource "secrets" in API group "" in the namespace "twin"`},
	},
}

func TestRefusals(t *testing.T) {
	for name, tt := range answers {
		for kind, subject := range map[string]struct {
			object *unstructured.Unstructured
			want   []string
		}{
			"ConfigMap": {configMap(t, "settings", "1"), tt.object},
			"Secret":    {secret(t), tt.secret},
		} {
			for _, dry := range []string{"dry ", ""} {
				t.Run(dry+name+" "+kind, func(t *testing.T) {
					c := newCluster(t)
					c.Answer(refusing(dry+"PATCH twin/"+strings.ToLower(kind)+"s/settings", tt.status))
					report := run(t, c, creation(subject.object)...)
					var want []string
					for _, line := range subject.want {
						want = append(want, kind+" settings "+line)
					}
					if diff := cmp.Diff(want, lines(report)); diff != "" || len(report.Written) > 0 {
						t.Errorf("written %v (-want +got):\n%s", report.Written, diff)
					}
				})
			}
		}
	}
}

func refusing(when string, with *metav1.Status) func(string) *metav1.Status {
	return func(request string) *metav1.Status {
		if request == when {
			return with
		}
		return nil
	}
}

func TestRefusalPreventsAllWrites(t *testing.T) {
	c := newCluster(t)
	c.Answer(refusing("dry PATCH twin/deployments/web", status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")))
	report := run(t, c, creation(configMap(t, "settings", "1"), secret(t), deployment(t))...)
	if diff := cmp.Diff([]string{"Deployment web : no"}, lines(report)); diff != "" {
		t.Error(diff)
	}
	for _, request := range c.TakeRequests() {
		if !strings.HasPrefix(request, "dry ") && !strings.HasPrefix(request, "GET ") {
			t.Errorf("request %s", request)
		}
	}
}

// TestErrorsAboutSecrets checks that errors other than refusals contain nothing of a Secret and are otherwise unchanged.
func TestErrorsAboutSecrets(t *testing.T) {
	c := newCluster(t)
	c.Answer(refusing("dry PATCH twin/secrets/settings",
		status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed calling webhook with "+hidden)))
	_, err := applierOf(c).Apply(t.Context(), twin, creation(secret(t)), nil)
	if !apierrors.IsInternalError(err) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), hidden) {
		t.Errorf("error %v", err)
	}
}

func TestPodsAreDryRun(t *testing.T) {
	const quota = "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"
	forbidden := func(message string) *metav1.Status {
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, message)
	}
	violates := forbidden(`pods "web-1" is forbidden: violates PodSecurity "restricted:latest": a, b`)
	tooFew := forbidden(`pods "web-1" is forbidden: ` + quota)
	idle := deployment(t)
	idle.Object["spec"].(map[string]any)["replicas"] = int64(0)
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		answer *metav1.Status
		want   []string
	}{
		"pod security": {deployment(t), violates, []string{`Deployment web spec.template: violates PodSecurity "restricted:latest": a, b`}},
		"a field": {deployment(t), status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "no",
			metav1.StatusCause{Field: "spec.containers[0].image", Message: "Required value"}),
			[]string{"Deployment web spec.template.spec.containers[0].image: Required value"}},
		"quota":                 {deployment(t), tooFew, []string{"Deployment web spec.template: " + quota}},
		"quota, and no pods":    {idle, tooFew, []string{}},
		"no right to make pods": {deployment(t), forbidden(`User "s" cannot create resource "pods"`), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Answer(refusing("dry POST twin/pods", tt.answer))
			if diff := cmp.Diff(tt.want, lines(run(t, c, creation(tt.object)...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotasCountAllSteps(t *testing.T) {
	quota := func(hard, used string) *unstructured.Unstructured {
		return object(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: twin}, "+
			"status: {hard: {"+hard+"}, used: {"+used+"}}}")
	}
	// exceeds returns the quota's message about a request for an object.
	exceeds := func(object, what string, used int) []string {
		return []string{fmt.Sprintf("%s : exceeded quota: small, requested: %s=1, used: %[2]s=%[3]d with what is created before it, "+
			"limited: %[2]s=%[3]d",
			object, what, used)}
	}
	services := creation(
		object(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: twin}, spec: {type: NodePort, ports: [{port: 1}, {port: 2}]}}"),
		object(t, "{apiVersion: v1, kind: Service, metadata: {name: b, namespace: twin}, spec: {type: LoadBalancer, ports: [{port: 1}]}}"))
	maps := creation(configMap(t, "a", "1"), configMap(t, "b", "1"), configMap(t, "c", "1"))
	scoped := quota("configmaps: 1", "configmaps: 1")
	scoped.Object["spec"] = map[string]any{"scopes": []any{"BestEffort"}}
	for name, tt := range map[string]struct {
		quota *unstructured.Unstructured
		steps []apply.Step
		want  []string
	}{
		"room for two of three": {
			quota(`"count/configmaps": 3, pods: 1`, `"count/configmaps": 1`), maps, exceeds("ConfigMap c", "count/configmaps", 3),
		},
		"by the old name": {quota("configmaps: 2", "configmaps: 1"), maps[:2], exceeds("ConfigMap b", "configmaps", 2)},
		"room for all":    {quota("configmaps: 4", "configmaps: 1"), maps, []string{}},
		"about some pods": {scoped, maps, []string{}},
		"node ports": {
			quota("services.nodeports: 2", "services.nodeports: 0"), services, exceeds("Service b", "services.nodeports", 2),
		},
		"load balancers": {
			quota("services.loadbalancers: 0", "services.loadbalancers: 0"), services, exceeds("Service b", "services.loadbalancers", 0),
		},
		"none of another kind": {quota(`"count/deployments.apps": 0`, `"count/deployments.apps": 0`), maps, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tt.quota)
			report := run(t, c, tt.steps...)
			if diff := cmp.Diff(tt.want, lines(report)); diff != "" || len(tt.want) > 0 && len(report.Written) > 0 {
				t.Errorf("written %v (-want +got):\n%s", report.Written, diff)
			}
		})
	}
	t.Run("without permission to list quotas", func(t *testing.T) {
		c := newCluster(t, quota("configmaps: 0", ""))
		c.Answer(refusing("GET twin/resourcequotas", status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")))
		if report := run(t, c, maps...); len(report.Written) != 3 {
			t.Errorf("written %v, %q", report.Written, lines(report))
		}
	})
}

func TestNamespace(t *testing.T) {
	creatable := apply.Target{Namespace: "fresh", Creation: object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: fresh}}")}
	settings := configMap(t, "settings", "1")
	settings.SetNamespace("fresh")
	steps := creation(settings)
	t.Run("that does not exist", func(t *testing.T) {
		c := newCluster(t)
		target := apply.Target{Namespace: "fresh"}
		for name, do := range both(t, c, target, steps) {
			if report := do(); !cmp.Equal([]string{"Namespace fresh : does not exist"}, lines(report)) || len(report.Written) > 0 {
				t.Errorf("%s: %q", name, lines(report))
			}
		}
	})
	t.Run("that will be created", func(t *testing.T) {
		c := newCluster(t)
		does := both(t, c, creatable, steps)
		if report := does["check"](); !report.Unchecked || report.NamespaceCreated || !report.IsClean() {
			t.Errorf("%+v", report)
		}
		if got := c.TakeRequests(); !cmp.Equal(got, []string{"GET namespaces/fresh", "dry PATCH namespaces/fresh"}) {
			t.Errorf("requests %q", got)
		}
		if report := does["apply"](); report.Unchecked || !report.NamespaceCreated || len(report.Written) != 1 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("that Pods run in", func(t *testing.T) {
		c, asked := newCluster(t), 0
		c.Answer(func(request string) *metav1.Status {
			if asked++; request == "GET fresh/serviceaccounts/default" && asked > 4 {
				c.Put(object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: fresh}}"))
			}
			return nil
		})
		web := deployment(t)
		web.SetNamespace("fresh")
		report, err := applierOf(c).Apply(t.Context(), creatable, creation(web), nil)
		if requests := c.TakeRequests(); err != nil || len(report.Written) != 1 || !slices.Contains(requests, "dry POST fresh/pods") ||
			requests[4] != "GET fresh/serviceaccounts/default" {
			t.Errorf("%v, %+v, requests %q", err, report, requests)
		}
	})
	t.Run("that is rejected", func(t *testing.T) {
		c := newCluster(t)
		no := status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		c.Answer(func(request string) *metav1.Status {
			if strings.HasSuffix(request, "PATCH namespaces/fresh") {
				return no
			}
			return nil
		})
		for name, do := range both(t, c, creatable, steps) {
			if report := do(); !cmp.Equal([]string{"Namespace fresh : no"}, lines(report)) || report.NamespaceCreated || len(report.Written) > 0 {
				t.Errorf("%s: %+v", name, report)
			}
		}
	})
}

// both returns the two operations on steps: Check and Apply.
func both(t *testing.T, c *environmenttest.Cluster, target apply.Target, steps []apply.Step) map[string]func() apply.Report {
	t.Helper()
	applier := applierOf(c)
	return map[string]func() apply.Report{
		"check": func() apply.Report {
			report, err := applier.Check(t.Context(), target, steps)
			if err != nil {
				t.Error(err)
			}
			return report
		},
		"apply": func() apply.Report {
			report, err := applier.Apply(t.Context(), target, steps, nil)
			if err != nil {
				t.Error(err)
			}
			return report
		},
	}
}
