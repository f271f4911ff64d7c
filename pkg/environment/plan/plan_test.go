// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const (
	web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: wait, image: "wait:1", envFrom: [{secretRef: {name: database}}]}]
      containers:
      - {name: web, image: "web:1", envFrom: [{configMapRef: {name: app-config}}], resources: {limits: {memory: 64Mi}}}
      volumes: [{name: extra, configMap: {name: extra, optional: true}}]
`
	report = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: report}}
        spec: {containers: [{name: report, image: "report:1", envFrom: [{configMapRef: {name: report-config}}]}]}
`
	appConfig    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-config}, data: {level: info}}"
	reportConfig = "{apiVersion: v1, kind: ConfigMap, metadata: {name: report-config}, data: {to: sales}}"
	database     = "{apiVersion: v1, kind: Secret, metadata: {name: database}, data: {password: aHVudGVyMg==}}"
	service      = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 80, protocol: TCP}]}
`
	mine    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: shop-alice}, data: {a: b}}"
	pulling = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, imagePullSecrets: [{name: database}]}"
	ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`
	autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`
)

// shop returns a fixture after a first sync.
func shop(t *testing.T) *fixture {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range []string{web, report, appConfig, reportConfig, database, service, ingress} {
		objects = append(objects, object(t, text))
	}
	s := newFixture(t, objects...)
	s.sync()
	s.Revision++
	return s
}

// replaced returns an object with parts of its text replaced.
func replaced(t *testing.T, text string, oldNew ...string) *unstructured.Unstructured {
	t.Helper()
	return object(t, strings.NewReplacer(oldNew...).Replace(text))
}

func TestShared(t *testing.T) {
	const revision = " /metadata/labels/configbutler.ai~1revision"
	tests := map[string]struct {
		do    func(s *fixture)
		want  []string
		fails []string
	}{
		"nothing": {do: func(*fixture) {}},
		"production changes": {
			do: func(s *fixture) {
				s.put(replaced(t, web, "web:1", "web:2"))
				s.put(replaced(t, database, "aHVudGVyMg==", "aHVudGVyMw=="))
			},
			want: []string{
				"update Secret database: Deployment web refers to it /data/password" + revision,
				"update Deployment web: the catalog offers it" + revision + " /spec/template/spec/containers[name=web]/image",
			},
		},
		"only what the index names": {
			do: func(s *fixture) {
				s.Action = v1alpha1.SyncActionCluster
				s.put(replaced(t, web, "web:1", "web:2"))
				s.put(replaced(t, appConfig, "info", "debug"))
				s.drop("CronJob", "report")
				s.add(object(t, autoscaler))
			},
			want: []string{"update ConfigMap app-config: the environment's workloads need it /data/level" + revision},
		},
		"a deleted source": {
			do: func(s *fixture) {
				s.drop("ConfigMap", "app-config")
				s.put(replaced(t, report, "report:1", "report:2"))
			},
			want: []string{
				"leave ConfigMap app-config: the source does not have it, and something refers to it",
				"update CronJob report: the catalog offers it" + revision + " /spec/jobTemplate/spec/template/spec/containers[name=report]/image",
			},
			fails: []string{"Failed to sync ConfigMap 'app-config' from production - does not exist"},
		},
		"a deleted source, by the index": {
			do: func(s *fixture) {
				s.Action = v1alpha1.SyncActionCluster
				s.drop("ConfigMap", "app-config")
			},
			fails: []string{"Failed to sync ConfigMap 'app-config' from production - does not exist"},
		},
		"a workload goes, another comes": {
			do: func(s *fixture) {
				s.drop("CronJob", "report")
				s.add(replaced(t, report, "name: report-config", "name: app-config", "name: report,", "name: x,", "name: report}", "name: audit}"))
			},
			want: []string{
				"create CronJob audit: the catalog offers it",
				"delete CronJob report: the catalog does not offer it",
				"delete ConfigMap report-config: nothing needs it any more",
			},
		},
		"what a developer made and added": {
			do: func(s *fixture) {
				s.target.update("jane", object(t, mine))
				s.edit("jane", "ConfigMap", "app-config", func(o *unstructured.Unstructured) { set(t, o, "x", "data", "own") })
				s.put(replaced(t, appConfig, "info", "debug"))
			},
			want: []string{"update ConfigMap app-config: Deployment web refers to it /data/level" + revision},
		},
		"what a developer changed": {
			do: func(s *fixture) {
				s.edit("jane", "ConfigMap", "app-config", func(o *unstructured.Unstructured) { set(t, o, "x", "data", "level") })
			},
			want: []string{"update ConfigMap app-config: Deployment web refers to it /data/level" + revision},
		},
		"some workloads": {
			do: func(s *fixture) {
				s.Only = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
				s.put(replaced(t, web, "web:1", "web:2", "app-config", "other"))
				s.put(replaced(t, report, "report:1", "report:2"))
				s.add(replaced(t, appConfig, "app-config", "other"))
			},
			want: []string{
				"create ConfigMap other: Deployment web refers to it",
				"update Deployment web: the catalog offers it" + revision + " /spec/template/spec/containers[name=web]/envFrom" +
					" /spec/template/spec/containers[name=web]/image",
			},
		},
		"some workloads, one of them deleted": {
			do: func(s *fixture) {
				s.Only = []v1alpha1.WorkloadReference{{Kind: "CronJob", Name: "report"}}
				s.drop("CronJob", "report")
				s.drop("Deployment", "web")
			},
			want: []string{"delete CronJob report: the catalog does not offer it"},
		},
		"some workloads, by the index": {
			do: func(s *fixture) {
				s.Action, s.Only = v1alpha1.SyncActionCluster, []v1alpha1.WorkloadReference{{Kind: "CronJob", Name: "report"}}
				s.put(replaced(t, appConfig, "info", "debug"))
				s.put(replaced(t, reportConfig, "sales", "all"))
			},
			want: []string{"update ConfigMap report-config: the environment's workloads need it /data/to" + revision},
		},
		"the target was deleted": {
			do: func(s *fixture) { clear(s.target.objects) },
			want: []string{
				"create ConfigMap app-config: Deployment web refers to it", "create ConfigMap report-config: CronJob report refers to it",
				"create Secret database: Deployment web refers to it", "create Service web: Deployment web refers to it",
				"create CronJob report: the catalog offers it", "create Deployment web: the catalog offers it",
				"create Ingress web: it leads to Service web",
			},
		},
		"no Ingresses any more": {
			do:   func(s *fixture) { s.Environment.Spec.Adapt.IngressHosts = v1alpha1.IngressHosts{} },
			want: []string{"delete Ingress web: nothing needs it any more"},
		},
		"a patch that is written otherwise than it is stored": {
			do: func(s *fixture) {
				s.Environment.Spec.Patches = []v1alpha1.Patch{
					{
						Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchStrategicMerge,
						Patch: "{spec: {template: {spec: {hostNetwork: false, containers: [{name: web, args: [], resources: {limits: {cpu: 2000m}}}]}}}}",
					},
					{Target: v1alpha1.PatchTarget{Kind: "Secret"}, Type: v1alpha1.PatchMerge, Patch: "{stringData: {password: hunter2}}"},
				}
			},
			want: []string{
				"update Deployment web: the catalog offers it" + revision + " /spec/template/spec/containers[name=web]/resources/limits/cpu",
			},
		},
		"a patch that refers to an object of the developer": {
			do: func(s *fixture) {
				s.target.update("jane", object(t, mine))
				s.Environment.Spec.Patches = []v1alpha1.Patch{{
					Target: v1alpha1.PatchTarget{Kind: "CronJob"}, Type: v1alpha1.PatchJSON6902,
					Patch: `[{op: add, path: /spec/jobTemplate/spec/template/spec/containers/0/envFrom/-, value: {configMapRef: {name: mine}}}]`,
				}}
			},
			want: []string{
				"update CronJob report: the catalog offers it" + revision + " /spec/jobTemplate/spec/template/spec/containers[name=report]/envFrom",
			},
		},
		"what cannot be changed is replaced": {
			do: func(s *fixture) {
				s.put(replaced(t, appConfig, ", data", ", immutable: true, data"))
				s.sync()
				s.Revision++
				s.put(replaced(t, appConfig, ", data", ", immutable: true, data", "info", "debug"))
			},
			want: []string{"update ConfigMap app-config: Deployment web refers to it /data/level" + revision},
		},
		"fields changed by admission": {
			do: func(s *fixture) {
				key := plan.KeyOf(object(t, web))
				live := s.target.objects[key]
				fields := container(t, live)
				fields["image"] = "mirror/web:1"
				set(t, live, []any{fields}, "spec", "template", "spec", "containers")
			},
		},
		"less in a list that is one field": {
			do: func(s *fixture) {
				s.put(replaced(t, report, "envFrom: [{", "envFrom: [{prefix: P_, "))
				s.sync()
				s.Revision++
				s.put(object(t, report))
			},
			want: []string{
				"update CronJob report: the catalog offers it" + revision + " /spec/jobTemplate/spec/template/spec/containers[name=report]/envFrom",
			},
		},
		"a duplicate": {
			do: func(s *fixture) {
				s.put(replaced(t, web, "resources", "env: [{name: A, value: first}, {name: B, value: b}, {name: A, value: last}], "+
					"ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP, name: http}], resources"))
			},
			want: []string{
				"update Deployment web: the catalog offers it" + revision + " /spec/template/spec/containers[name=web]/env[name=A]/name" +
					" /spec/template/spec/containers[name=web]/env[name=A]/value /spec/template/spec/containers[name=web]/env[name=B]/name" +
					" /spec/template/spec/containers[name=web]/env[name=B]/value" +
					" /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=TCP]/containerPort" +
					" /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=TCP]/name" +
					" /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=TCP]/protocol",
			},
		},
		"an account of a namespace": {
			do: func(s *fixture) {
				s.target.update("kube-controller-manager", object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}"))
				s.add(object(t, pulling))
			},
			want: []string{
				"update ServiceAccount default: CronJob report and 1 more refer to it /imagePullSecrets /metadata/labels/configbutler.ai~1catalog" +
					" /metadata/labels/configbutler.ai~1environment /metadata/labels/configbutler.ai~1environment-namespace" +
					" /metadata/labels/configbutler.ai~1environment-uid" + revision,
			},
		},
		"an account of a user": {
			do: func(s *fixture) {
				s.target.update("jane", replaced(t, pulling, "database", "mine"))
				s.add(object(t, pulling))
			},
			want:  []string{"leave ServiceAccount default: the environment has not written it"},
			fails: []string{"ServiceAccount 'default' of shop-alice is there, and the environment has not written it: force takes it over"},
		},
		"an object that is being deleted": {
			do: func(s *fixture) {
				key := plan.KeyOf(object(t, appConfig))
				s.target.objects[key].SetDeletionTimestamp(&metav1.Time{})
				set(t, s.target.objects[key], "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
				s.put(replaced(t, appConfig, "info", "debug"))
			},
			want:  []string{"leave ConfigMap app-config: it is being deleted"},
			fails: []string{"ConfigMap 'app-config' of shop-alice is being deleted: it is written when it is gone"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			s.t = t
			test.do(s)
			p := s.sync()
			if diff := cmp.Diff(test.want, lines(p)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			var fails []string
			for _, failure := range p.Failures() {
				fails = append(fails, failure.Message)
			}
			if diff := cmp.Diff(test.fails, fails); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestForeignObjects plans objects whose names exist in the target, not written by the environment.
func TestForeignObjects(t *testing.T) {
	makers := map[string]func(s *fixture, o *unstructured.Unstructured){
		"a developer": func(s *fixture, o *unstructured.Unstructured) { s.target.update("jane", o) },
		"a deleted environment of the same name": func(s *fixture, o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{
				v1alpha1.LabelEnvironment: "alice", v1alpha1.LabelEnvironmentNamespace: "teams", v1alpha1.LabelEnvironmentUID: "another",
			})
			s.target.apply(v1alpha1.FieldManager, o)
		},
		"a controller, of something of ours": func(s *fixture, o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{
				v1alpha1.LabelEnvironment: "alice", v1alpha1.LabelEnvironmentNamespace: "teams",
				v1alpha1.LabelEnvironmentUID: string(s.Environment.UID),
			})
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "1", Controller: new(true)}})
			s.target.update("controller", o)
		},
	}
	for name, write := range makers {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, web), object(t, appConfig), object(t, database))
			own := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-config, namespace: shop-alice}, data: {level: mine, own: x}}")
			write(s, own)
			other := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop-alice}}")
			write(s, other)
			p := s.sync()
			if len(p.NotOurs) != 1 || p.NotOurs[0].Name != "app-config" || p.NotOurs[0].Reason != v1alpha1.ReasonNotOurs {
				t.Errorf("foreign objects = %v", p.NotOurs)
			}
			shown := p.Changes(plan.HideSecrets)
			if shown[0].Name != "app-config" || shown[0].Refusal != p.NotOurs[0].Message {
				t.Errorf("change = %+v", shown[0])
			}
			if name == "a controller, of something of ours" {
				return // The object of a controller is not taken over.
			}
			s.Force = true
			p = s.sync()
			live := s.target.objects[plan.KeyOf(own)]
			level, _, _ := unstructured.NestedString(live.Object, "data", "level")
			kept, _, _ := unstructured.NestedString(live.Object, "data", "own")
			if !plan.Owns(s.Environment, live) || level != "info" || len(p.NotOurs) > 0 || name == "a developer" && kept != "x" {
				t.Errorf("object was not taken over: %v, steps %v", live, lines(p))
			}
			if plan.Owns(s.Environment, s.target.objects[plan.KeyOf(other)]) {
				t.Error("unreferenced object was taken over")
			}
		})
	}
}

func TestInvalidPatches(t *testing.T) {
	s := newFixture(t, object(t, web), object(t, database))
	s.Environment.Spec.Patches = []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Secret"}, Type: v1alpha1.PatchJSON6902,
		Patch: `[{op: replace, path: /data/nothing, value: aHVudGVyMg==}]`,
	}}
	_, err := planner.Plan(t.Context(), s.Input)
	if err == nil || !strings.Contains(err.Error(), `patches[0] (JSON6902) to Secret "database"`) || strings.Contains(err.Error(), "aHVu") {
		t.Errorf("%v", err)
	}
	s.Environment.Spec.Patches[0].Patch = "["
	if _, err = planner.Plan(t.Context(), s.Input); err == nil || !strings.Contains(err.Error(), "spec.patches[0].patch") {
		t.Errorf("%v", err)
	}
	s.Environment.Spec.Patches = nil
	s.Environment.Spec.Adapt.IngressHosts.Template = "{nobody}"
	_, err = planner.Plan(t.Context(), s.Input)
	if err == nil || !strings.Contains(err.Error(), "spec.adapt.ingressHosts.template must") {
		t.Errorf("%v", err)
	}
}
