// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// secret is part of every value of a Secret, and of nothing else.
const secret = "hunter2"

// world changes a source and a target at random.
type world struct {
	*rand.Rand
	*fixture
}

func (w world) oneOf(choices ...string) string { return choices[w.Intn(len(choices))] }

// pod returns a Pod template with random references.
func (w world) pod(app string) string {
	env := fmt.Sprintf("{name: MODE, value: %q}", w.oneOf("a", "b", "c"))
	if w.Intn(2) == 0 {
		env += fmt.Sprintf(", {name: WORD, valueFrom: {secretKeyRef: {name: %s, key: word, optional: %v}}}",
			w.oneOf("s1", "s2", "s3"), w.Intn(2) == 0)
	}
	containers := fmt.Sprintf("{name: main, image: 'main:%d', env: [%s], envFrom: [{configMapRef: {name: %s}}], "+
		"resources: {limits: {cpu: %q}}}", w.Intn(4), env, w.oneOf("c1", "c2", "c3"), w.oneOf("500m", "1", "1500m"))
	if w.Intn(2) == 0 {
		containers += fmt.Sprintf(", {name: side, image: 'side:%d', ports: [{containerPort: %d}]}", w.Intn(3), 80+w.Intn(2))
	}
	account := ""
	if w.Intn(3) == 0 {
		account = "serviceAccountName: runner, "
	}
	return fmt.Sprintf("{metadata: {labels: {app: %s}}, spec: {%scontainers: [%s]}}", app, account, containers)
}

// an returns a random object of the source.
func (w world) an(kind, name string) *unstructured.Unstructured {
	head := fmt.Sprintf("kind: %s\nmetadata: {name: %s, labels: {tier: %q}}\n", kind, name, w.oneOf("x", "y"))
	value := base64.StdEncoding.EncodeToString([]byte(secret + w.oneOf("1", "2", "3")))
	body := ""
	switch kind {
	case "StatefulSet":
		body = fmt.Sprintf("apiVersion: apps/v1\nspec: {selector: {matchLabels: {app: %s}}, template: %s, "+
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {volumeName: v%d}}]}", name, w.pod(name), w.Intn(2))
	case "Deployment":
		body = fmt.Sprintf("apiVersion: apps/v1\nspec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: %s}",
			w.Intn(4), name, w.pod(name))
	case "CronJob":
		body = fmt.Sprintf("apiVersion: batch/v1\nspec: {schedule: '@daily', jobTemplate: {spec: {template: %s}}}", w.pod(name))
	case "ConfigMap":
		body = fmt.Sprintf("apiVersion: v1\nimmutable: %v\ndata: {%s: %q, fixed: %q}",
			w.Intn(6) == 0, w.oneOf("k", "l"), w.oneOf("1", "2"), w.oneOf("1", "2"))
	case "Secret":
		head = fmt.Sprintf("kind: Secret\nmetadata: {name: %s, annotations: {example.com/note: %q, example.com/%s: %q, "+
			"kapp.k14s.io/original: %q}}\n",
			name, value, value[len(value)-4:len(value)-2], secret, value)
		body = fmt.Sprintf("apiVersion: v1\ntype: Opaque\ndata: {word: %q, %s: %q}", value, w.oneOf("m", "n"), value)
	case "Service":
		body = fmt.Sprintf("apiVersion: v1\nspec: {type: %s, selector: {app: %s}, ports: [{port: %d, targetPort: 80, protocol: TCP}]}",
			w.oneOf("ClusterIP", "LoadBalancer"), name, 80+w.Intn(2))
	case "ServiceAccount":
		body = fmt.Sprintf("apiVersion: v1\nimagePullSecrets: [{name: %s}]", w.oneOf("s1", "s2"))
	case "HorizontalPodAutoscaler":
		body = fmt.Sprintf("apiVersion: autoscaling/v2\nspec: {maxReplicas: %d, "+
			"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}}", 2+w.Intn(3), name)
	case "PodDisruptionBudget":
		body = fmt.Sprintf("apiVersion: policy/v1\nspec: {minAvailable: 1, selector: {matchLabels: {app: %s}}}", name)
	case "NetworkPolicy":
		body = fmt.Sprintf("apiVersion: networking.k8s.io/v1\nspec: {podSelector: {matchLabels: {app: %s}}, policyTypes: [Ingress], "+
			"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}]}]}", name, w.oneOf("production", "other"))
	case "Ingress":
		body = fmt.Sprintf("apiVersion: networking.k8s.io/v1\nspec: {tls: [{hosts: [%[1]s.example.com], secretName: %[2]s}], "+
			"rules: [{host: %[1]s.example.com, http: {paths: [{path: /, pathType: Prefix, "+
			"backend: {service: {name: %[1]s, port: {number: 80}}}}]}}]}", name, w.oneOf("s1", "s3"))
	}
	return object(w.t, head+body)
}

// kinds are the kinds of the source, with the names of their objects.
var kinds = map[string][]string{
	"Deployment": {"web", "api"}, "StatefulSet": {"db"}, "CronJob": {"report"},
	"ConfigMap": {"c1", "c2", "c3"}, "Secret": {"s1", "s2", "s3"}, "Service": {"web", "db"}, "ServiceAccount": {"runner", "default"},
	"HorizontalPodAutoscaler": {"web"}, "PodDisruptionBudget": {"web"}, "Ingress": {"web"}, "NetworkPolicy": {"web"},
}

// ordered are the kinds in a fixed order, so that a seed is reproducible.
var ordered = []string{
	"Deployment", "StatefulSet", "CronJob", "ConfigMap", "Secret", "Service", "ServiceAccount",
	"HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "NetworkPolicy",
}

// change changes the source, the target and the request.
func (w world) change() {
	for range 1 + w.Intn(6) {
		kind := ordered[w.Intn(len(ordered))]
		if name := w.oneOf(kinds[kind]...); w.Intn(6) == 0 {
			w.drop(kind, name)
		} else {
			w.put(w.an(kind, name))
		}
	}
	w.Revision++
	for range w.Intn(6) {
		w.disturb()
	}
	w.Action = v1alpha1.SyncAction(w.oneOf("Catalog", "Cluster", "All", "All"))
	w.Force, w.Only, w.Resolution = w.Intn(3) == 0, nil, v1alpha1.ConflictResolutionSpec{}
	if w.Intn(4) == 0 {
		w.Only = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}, {Kind: "CronJob", Name: "report"}}
	}
	if w.Intn(4) == 0 {
		choices := []v1alpha1.ConflictChoice{
			{Kind: "Deployment", Name: "web"}, {Kind: "Deployment", Name: "api"}, {Kind: "StatefulSet", Name: "db"},
		}
		w.Resolution.Keep, w.Resolution.Take = choices[:1], choices[1:]
	}
}

// disturb makes a random edit in the target.
func (w world) disturb() {
	kind := w.oneOf(append([]string{"Deployment", "Deployment", "StatefulSet"}, ordered...)...)
	name := w.oneOf(kinds[kind]...)
	var live *unstructured.Unstructured
	for key, o := range w.target.objects {
		if key.Kind == kind && key.Name == name {
			live = o.DeepCopy()
		}
	}
	own := w.an(kind, name)
	own.SetNamespace("shop-alice")
	switch chance := w.Intn(8); {
	case live == nil:
		w.target.update("jane", own)
	case chance == 0:
		delete(w.target.objects, plan.KeyOf(live))
	case chance == 1:
		live.SetLabels(own.GetLabels()) // The object does not belong to the environment any more.
		w.target.update("jane", live)
	default:
		for _, field := range []string{"spec", "data", "imagePullSecrets"} {
			if value, ok := own.Object[field]; ok {
				live.Object[field] = value
			}
		}
		w.target.update(w.oneOf("jane", "jane", "kubectl"), live)
	}
}

// TestRandomChanges makes random changes and checks invariants: a plan does what it predicts, leaves nothing to do, touches
// no foreign objects, and reveals no secrets.
func TestRandomChanges(t *testing.T) {
	found := map[string]int{}
	for seed := range int64(14) {
		w := world{rand.New(rand.NewSource(seed)), newFixture(t)}
		if seed%2 == 1 {
			w.Environment.Spec.Type = v1alpha1.EnvironmentBranch
			w.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}, {Kind: "StatefulSet", Name: "db"}}
		}
		if seed%3 == 0 {
			w.Environment.Spec.Patches = []v1alpha1.Patch{{
				Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchStrategicMerge,
				Patch: "{spec: {template: {spec: {containers: [{name: main, image: patched, env: [{name: OWN, value: ''}], " +
					"resources: {limits: {cpu: 2000m}}}]}}}}",
			}}
		}
		for _, kind := range ordered {
			for _, name := range kinds[kind] {
				w.put(w.an(kind, name))
			}
		}
		for round := range 8 {
			w.change()
			w.checkPlan(fmt.Sprintf("seed %d, round %d", seed, round), found)
		}
	}
	t.Log(found)
	for _, what := range []string{"create", "update", "delete", "leave", "conflicts", "not ours", "adopted", "missing", "removals", "hidden"} {
		if found[what] < 5 {
			t.Errorf("%s: only %d cases, which are too few", what, found[what])
		}
	}
}

func (w world) checkPlan(at string, found map[string]int) {
	w.t.Helper()
	theirs := map[plan.Key]bool{}
	for key, live := range w.target.objects {
		theirs[key] = !plan.Owns(w.Environment, live)
	}
	p := w.sync()
	for _, step := range p.Steps {
		found[string(step.Verb)]++
		if w.Action == v1alpha1.SyncActionCluster && (step.Verb == plan.Delete || step.Action != w.Action || step.Group != "") {
			w.t.Errorf("%s: refresh has the step %s", at, step)
		}
		if theirs[step.Key] && step.Verb != plan.Leave {
			found["adopted"]++
			isAccount := step.Kind == "ServiceAccount" && step.Name == "default"
			if !w.Force && !isAccount || step.Verb == plan.Delete {
				w.t.Errorf("%s: step for a foreign object: %s", at, step)
			}
		}
		if step.Removal != nil {
			found["removals"]++
		}
	}
	found["conflicts"] += len(p.Conflicts)
	found["not ours"] += len(p.NotOurs)
	found["missing"] += len(p.Missing)
	w.checkTexts(at, p, found)
	if w.t.Failed() {
		w.t.Fatalf("%s: %s %v force %v: %q", at, w.Action, w.Only, w.Force, lines(p))
	}
}

// checkTexts checks that the texts of a plan contain no value of a Secret.
func (w world) checkTexts(at string, p *plan.Plan, found map[string]int) {
	w.t.Helper()
	shown := p.Changes(plan.HideSecrets)
	texts := fmt.Sprintf("%v %+v %#v %s %v", p, *p, p.Steps, p.Steps, p.Summaries())
	for _, part := range []any{p, shown, p.Index, p.Failures(), p.Conflicts, p.Warnings, p.Summaries(), workloads(p)} {
		text, err := json.Marshal(part)
		if err != nil {
			w.t.Fatal(err)
		}
		texts += string(text)
	}
	if strings.Contains(texts, base64.StdEncoding.EncodeToString([]byte(secret))[:8]) || strings.Contains(texts, secret) {
		w.t.Errorf("%s: a text contains a secret value: %s", at, texts)
	}
	for _, change := range shown {
		for _, field := range change.Fields {
			if field.Hidden {
				found["hidden"]++
			}
		}
	}
}
