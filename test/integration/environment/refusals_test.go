// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/environment/apply"
)

const password = "correct-horse"

const secret = "{apiVersion: v1, kind: Secret, metadata: {name: database, namespace: TARGET}, stringData: {password: " + password + "}}"

func settings(name, value string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: TARGET}, data: {key: " + value + "}}"
}

// workload returns a Deployment with more fields in its spec and its container.
func workload(spec, container string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: TARGET}, " +
		"spec: {" + spec + "replicas: 1, selector: {matchLabels: {app: web}}, template: " +
		"{metadata: {labels: {app: web}}, spec: {serviceAccountName: web, containers: [{name: web, image: web" + container + "}]}}}}"
}

const account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: TARGET}}"

func (s *fixture) creations(texts ...string) []apply.Step {
	s.Helper()
	var steps []apply.Step
	for _, text := range texts {
		steps = append(steps, create(s.object(text)))
	}
	return steps
}

// applyQuota applies a quota and waits until its usage is counted.
func (s *fixture) applyQuota(quota, name string) {
	s.Helper()
	o := s.put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: TARGET}, spec: {hard: {" + quota + "}}}")
	s.eventually("the quota", func(context.Context) (bool, error) {
		return text(s.live(o), "status", "used", name) != "", nil
	})
}

func TestQuota(t *testing.T) {
	for name, tt := range map[string]struct {
		quota, counts string
		steps         []string
		want          []string
	}{
		"quota-full": {"count/secrets: 0", "count/secrets", []string{account, settings("a", "v"), secret, workload("", "")}, []string{
			"Secret database : exceeded quota: small, requested: count/secrets=1, used: count/secrets=0, limited: count/secrets=0"}},
		"quota-sum": {"count/deployments.apps: 5, services: 1", "services", []string{
			account, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: TARGET}, spec: {ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: b, namespace: TARGET}, spec: {ports: [{port: 80}]}}", workload("", "")}, []string{
			"Service b : exceeded quota: small, requested: services=1, used: services=1 with what is created before it, limited: services=1"}},
		"quota-cpu": {"limits.cpu: 1", "limits.cpu", []string{account, workload("", ", resources: {limits: {cpu: 2}}")}, []string{
			"Deployment web spec.template: exceeded quota: small, requested: limits.cpu=2, used: limits.cpu=0, limited: limits.cpu=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTarget(t, name)
			s.applyQuota(tt.quota, tt.counts)
			var got []string
			s.eventually("the API server to know the quota's status", func(context.Context) (bool, error) {
				got = s.expectRefused(s.creations(tt.steps...)...)
				return !strings.Contains(strings.Join(got, "\n"), "status unknown for quota"), nil
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: careful}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {careful: "yes"}}
    resourceRules:
    - {apiGroups: [apps, ""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [deployments, secrets, configmaps]}
  validations:
  - expression: "request.operation == 'DELETE' || !has(object.metadata.labels) || !('bad' in object.metadata.labels)"
    messageExpression: "has(object.data) ? 'value: ' + string(object.data.password) : 'bad label'"
  - expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'keep'"
    message: must be kept
`

const binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, " +
	"metadata: {name: careful-everywhere}, spec: {policyName: careful, validationActions: [Deny]}}"

func TestAdmissionPolicy(t *testing.T) {
	s := newFixture(t, "policy")
	s.put("{apiVersion: v1, kind: Namespace, metadata: {name: policy, labels: {careful: 'yes'}}}")
	s.put(policy)
	s.put(binding)
	bad := strings.Replace(workload("", ""), "name: web,", "name: web, labels: {bad: 'yes'},", 1)
	encoded := "{apiVersion: v1, kind: Secret, metadata: {name: database, namespace: TARGET, labels: {bad: 'yes'}}, " +
		"data: {password: Y29ycmVjdA==}}"
	keep := s.put(settings("keep", "v"))
	steps := append(s.creations(account, settings("a", "v"), encoded, bad), remove(keep))
	const denied = "ValidatingAdmissionPolicy 'careful' with binding 'careful-everywhere' denied request"
	want := []string{
		"Secret database : " + denied, "Deployment web : " + denied + ": bad label", "ConfigMap keep : " + denied + ": must be kept",
	}
	s.eventually("the policy", func(ctx context.Context) (bool, error) {
		report, err := s.applier.Check(ctx, s.target(), steps)
		return len(report.Refusals) == len(want), err
	})
	if diff := cmp.Diff(want, s.expectRefused(steps...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	s := newTarget(t, "refusals", account, workload("", ""),
		"{apiVersion: v1, kind: LimitRange, metadata: {name: range, namespace: TARGET}, spec: {limits: [{type: Container, max: {memory: 1Gi}}]}}")
	live := s.live(s.object(workload("", "")))
	a := func(kind, content string) *unstructured.Unstructured {
		return s.object("{apiVersion: v1, kind: " + kind + ", metadata: {name: a, namespace: TARGET}, " + content)
	}
	for name, tt := range map[string]struct {
		step apply.Step
		// want are prefixes of the lines.
		want []string
	}{
		"a field that does not exist": {create(a("ConfigMap", "dota: {key: v}}")),
			[]string{"ConfigMap a dota: field not declared in schema"}},
		"a field of a Secret": {create(a("Secret", "stringDota: {key: "+password+"}}")),
			[]string{"Secret a stringDota: does not fit the schema"}},
		"a value of a Secret": {create(a("Secret", "data: {key: "+password+"}}")),
			[]string{"Secret a : the API server rejects the request; its message may quote the Secret and is left out"}},
		"a value that cannot be read": {create(a("ConfigMap", "binaryData: {key: a-b}}")),
			[]string{"ConfigMap a : unable to convert unstructured object to /v1, Kind=ConfigMap: error decoding from json: illegal base64 data"}},
		"the type of a Secret": {create(a("Secret", "type: kubernetes.io/tls, stringData: {key: "+password+"}}")),
			[]string{"Secret a data[tls.crt]: is required", "Secret a data[tls.key]: is required"}},
		"a value": {create(a("Service", "spec: {ports: [{port: 70000, targetPort: 80}]}}")),
			[]string{"Service a spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535"}},
		"a field that cannot be changed": {update(live, s.object(strings.ReplaceAll(workload("", ""), "{app: web}", "{app: other}"))),
			[]string{"Deployment web spec.selector: Invalid value: "}},
		"a limit": {update(live, s.object(workload("", ", resources: {limits: {memory: 2Gi}}"))),
			[]string{"Deployment web spec.template: maximum memory usage per Container is 1Gi, but limit is 2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.expectRefused(tt.step)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("got %q, want %q", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestPodSecurity(t *testing.T) {
	s := newFixture(t, "restricted")
	s.put("{apiVersion: v1, kind: Namespace, metadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}}")
	s.waitForAccount()
	daily := "{apiVersion: batch/v1, kind: CronJob, metadata: {name: daily, namespace: TARGET}, " +
		"spec: {schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}}"
	got := s.expectRefused(s.creations(account, workload("", ""), daily)...)
	want := []string{
		"Deployment web spec.template: violates PodSecurity", "CronJob daily spec.jobTemplate.spec.template: violates PodSecurity",
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnwritableNamespaces(t *testing.T) {
	s := newFixture(t, "not-there")
	if got := s.expectRefused(s.creations(settings("a", "v"))...); !cmp.Equal(got, []string{"Namespace not-there : does not exist"}) {
		t.Errorf("got %q", got)
	}
	s = newTarget(t, "going", "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: TARGET, finalizers: [example.com/hold]}}")
	held := s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: TARGET}}")
	s.delete(s.object("{apiVersion: v1, kind: Namespace, metadata: {name: TARGET}}"))
	got := s.expectRefused(s.creations(settings("a", "v"), secret)...)
	want := "metadata.namespace: namespace going is being terminated"
	if !cmp.Equal(got, []string{"ConfigMap a " + want, "Secret database " + want}) {
		t.Errorf("got %q", got)
	}
	released := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := s.resource(held).Patch(t.Context(), "held", types.MergePatchType, released, metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}
