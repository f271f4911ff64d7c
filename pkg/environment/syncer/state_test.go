// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
)

// unrelated is a Secret that no workload needs.
const unrelated = "{apiVersion: v1, kind: Secret, metadata: {name: unrelated}, data: {a: aHVudGVyMg==}}"

func isGateway(step plan.Step) bool { return plan.IsGatewayAPI(step.GroupKind) }

// TestPlansAreThoseOfEverything compares plans of the objects that were read with plans of the whole source.
func TestPlansAreThoseOfEverything(t *testing.T) {
	for _, action := range []v1alpha1.SyncAction{v1alpha1.SyncActionAll, v1alpha1.SyncActionCatalog, v1alpha1.SyncActionCluster} {
		t.Run(string(action), func(t *testing.T) {
			all := append(production(t), environmenttest.Object(t, unrelated))
			s := newReaderFixture(t, all...)
			s.HasGatewayAPI = true
			s.environment.Spec.Adapt.IngressHosts = v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsAsSource}
			if action == v1alpha1.SyncActionCluster {
				s.recordDependencies()
			}
			request := s.request()
			request.Action = action
			input := s.input(request)
			whole := input
			whole.Source = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
				return v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(o.GetKind())].Resource != ""
			})
			want, got := planOf(t, whole), planOf(t, input)
			if diff := cmp.Diff(stepLines(want), stepLines(got)); diff != "" || len(got.Steps) == 0 {
				t.Errorf("%d steps, plans differ:\n%s", len(got.Steps), diff)
			}
			if refreshes := action == v1alpha1.SyncActionCluster; refreshes == slices.ContainsFunc(got.Steps, isGateway) {
				t.Errorf("refreshes only: %v, steps: %v", refreshes, stepLines(got))
			}
			if diff := cmp.Diff(want.Index, got.Index); diff != "" {
				t.Errorf("indexes differ:\n%s", diff)
			}
			for _, request := range s.TakeRequests() {
				if request == "GET production/secrets" || strings.Contains(request, "unrelated") {
					t.Errorf("unexpected request: %s", request)
				}
			}
		})
	}
}

// TestRightsMayBeUnreadable has a server that cannot list some kinds of RBAC objects. These kinds are reported, and the others are read.
func TestRightsMayBeUnreadable(t *testing.T) {
	binding := func(kind, name, namespace string) *unstructured.Unstructured {
		o := environmenttest.Object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: "+kind+", metadata: {name: "+name+"}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}, "+
			"subjects: [{kind: ServiceAccount, name: web, namespace: "+namespace+"}]}")
		return o
	}
	s := shop(t)
	for name, namespace := range map[string]string{"web": environmenttest.Production, "other": "elsewhere"} {
		o := binding("RoleBinding", name, namespace)
		o.SetNamespace(environmenttest.Production)
		s.Put(o)
	}
	s.Put(binding("ClusterRoleBinding", "web", environmenttest.Production))
	role := environmenttest.Object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web}, rules: [{verbs: [get]}]}")
	role.SetNamespace(environmenttest.Target)
	s.Put(role)
	all := s.input(s.request())
	want := []string{"ClusterRoleBinding web", "RoleBinding web"}
	got := slices.DeleteFunc(names(all.Source), func(name string) bool { return !strings.Contains(name, "Binding") })
	if diff := cmp.Diff(want, got); diff != "" || len(all.Unreadable) > 0 || !slices.Contains(names(all.Live), "Role web") {
		t.Errorf("unreadable %v, live %q, bindings (-want +got):\n%s", all.Unreadable, names(all.Live), diff)
	}
	for _, o := range all.Live {
		if o.GetKind() == "Role" && o.Object["rules"] != nil {
			t.Error("a Role of the target was read")
		}
	}
	s.Answer(func(request string) *metav1.Status {
		if request == "GET clusterrolebindings" || request == "GET "+environmenttest.Target+"/roles" {
			return environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}
		return nil
	})
	some := s.input(s.request())
	if len(some.Unreadable) != 2 || !some.Unreadable.HasAll(plan.ClusterRoleBindings, plan.Roles) {
		t.Errorf("unreadable kinds = %v", some.Unreadable)
	}
	if !slices.Contains(names(some.Source), "RoleBinding web") || slices.Contains(names(some.Source), "ClusterRoleBinding web") {
		t.Errorf("objects of the source = %q", names(some.Source))
	}
}

// recordDependencies writes the records of a sync.
func (s *readerFixture) recordDependencies() {
	s.T.Helper()
	first := s.input(s.request())
	for _, record := range planOf(s.T, first).Index {
		s.api.Put(&v1alpha1.EnvironmentDependency{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: environmenttest.Teams, Name: v1alpha1.EnvironmentDependencyName("alice", record.Type, record.Source.Name),
				Labels:          map[string]string{v1alpha1.LabelEnvironment: "alice"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.environment, v1alpha1.SchemeGroupVersion.WithKind("Environment"))},
			},
			Status: record,
		})
	}
}

func stepLines(p *plan.Plan) []string {
	var out []string
	for _, step := range p.Steps {
		out = append(out, step.String())
	}
	for _, failure := range p.Failures() {
		out = append(out, failure.Message)
	}
	return append(out, p.Warnings...)
}

const (
	webWithAccount = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
	account  = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, imagePullSecrets: [{name: registry}]}"
	registry = "{apiVersion: v1, kind: Secret, metadata: {name: registry}, data: {password: aHVudGVyMg==}}"
)

// shop returns a fixture with a Deployment and its dependencies.
func shop(t *testing.T) *readerFixture {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range []string{webWithAccount, account, settings, registry} {
		objects = append(objects, environmenttest.Object(t, text))
	}
	return newReaderFixture(t, objects...)
}

// inTarget returns an object of the target, with the environment's labels if the environment has written it.
func inTarget(t *testing.T, text string, ours bool) *unstructured.Unstructured {
	t.Helper()
	o := environmenttest.Object(t, text)
	o.SetNamespace(environmenttest.Target)
	if ours {
		o.SetLabels(map[string]string{
			v1alpha1.LabelEnvironment: "alice", v1alpha1.LabelEnvironmentNamespace: environmenttest.Teams,
			v1alpha1.LabelEnvironmentUID: string(environmenttest.Environment().UID),
		})
	}
	return o
}

func TestLiveObjects(t *testing.T) {
	s := shop(t)
	s.Put(inTarget(t, settings, false))
	s.Put(inTarget(t, unrelated, true))
	s.Put(inTarget(t, webWithAccount, true))
	s.Put(inTarget(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}", true))
	s.Put(inTarget(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}", false))
	s.Put(inTarget(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}", false))
	input := s.input(s.request())
	want := []string{"ConfigMap old", "ConfigMap settings", "Deployment web", "PersistentVolumeClaim data", "Secret unrelated"}
	if diff := cmp.Diff(want, names(input.Live)); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	want = []string{"ConfigMap settings", "Secret registry", "ServiceAccount web"}
	if diff := cmp.Diff(want, names(input.Source)); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
	p := planOf(t, input)
	if len(p.Warnings) > 0 || len(p.NotOurs) != 1 {
		t.Errorf("warnings %q, foreign objects %v", p.Warnings, p.NotOurs)
	}
}

// TestVersionOfTheCatalog has a catalog with a version that the cluster serves but does not prefer.
func TestVersionOfTheCatalog(t *testing.T) {
	older := environmenttest.Object(t, webWithAccount)
	older.SetAPIVersion("apps/v1beta2")
	s := newReaderFixture(t, older)
	s.Put(inTarget(t, webWithAccount, true))
	for _, live := range s.input(s.request()).Live {
		if live.GetAPIVersion() != "apps/v1beta2" {
			t.Errorf("apiVersion of %s = %s", plan.KeyOf(live), live.GetAPIVersion())
		}
	}
}

func TestVersionThatIsNotServed(t *testing.T) {
	older := environmenttest.Object(t, webWithAccount)
	older.SetAPIVersion("apps/v1alpha1")
	s := newReaderFixture(t, older)
	_, err := s.read(s.request())
	want := `find the resource of Deployment web: no matches for kind "Deployment" in version "apps/v1alpha1"`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestRequestsAtOnce(t *testing.T) {
	s := newReaderFixture(t, production(t)...)
	var now, most atomic.Int32
	s.Answer(func(string) *metav1.Status {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		runtime.Gosched()
		now.Add(-1)
		return nil
	})
	s.input(s.request())
	if n := most.Load(); n > 4 {
		t.Errorf("%d concurrent requests", n)
	}
}

func TestPatchesOfTheEnvironmentAreFollowed(t *testing.T) {
	s := shop(t)
	extra := environmenttest.Object(t, unrelated)
	extra.SetNamespace(environmenttest.Production)
	s.Put(extra)
	s.environment.Spec.Patches = []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: "StrategicMerge",
		Patch: "spec: {template: {spec: {containers: [{name: web, envFrom: [{secretRef: {name: unrelated}}]}]}}}",
	}}
	if got := names(s.input(s.request()).Source); !slices.Contains(got, "Secret unrelated") {
		t.Errorf("objects of the source = %q", got)
	}
}

func TestFamilyAndBase(t *testing.T) {
	s := shop(t)
	branch, other := environmenttest.Environment(), environmenttest.Environment()
	branch.Name, branch.UID = "branch", "3"
	other.Name, other.UID, other.Spec.TargetNamespace = "bob", "4", "shop-bob"
	s.api.Put(s.environment, branch, other)
	applied := inTarget(t, settings, true)
	err := s.copies.Put(t.Context(), copies.Environment{UID: s.environment.UID}, copies.Change{
		Revision: 1, Applied: []*unstructured.Unstructured{applied},
	})
	if err != nil {
		t.Fatal(err)
	}
	input := s.input(s.request())
	if len(input.Related) != 1 || input.Related[0].Name != "branch" {
		t.Errorf("related environments = %v", input.Related)
	}
	request := s.request()
	request.Related = func(*v1alpha1.Environment) []*v1alpha1.Environment { return []*v1alpha1.Environment{other} }
	if input := s.input(request); !slices.Equal(input.Related, []*v1alpha1.Environment{other}) {
		t.Errorf("related environments = %v, want those of the request", input.Related)
	}
	if diff := cmp.Diff(map[plan.Key]*unstructured.Unstructured{plan.KeyOf(applied): applied}, input.Base); diff != "" {
		t.Errorf("base (-want +got):\n%s", diff)
	}
}

// TestClusterWithoutTheGatewayAPI checks that types that the cluster does not serve are not requested. An environment that has objects of
// them is not synced, unless it does not need them any more, because the API server may have just started.
func TestClusterWithoutTheGatewayAPI(t *testing.T) {
	s := newReaderFixture(t, production(t)...)
	s.environment.Spec.Adapt.IngressHosts.Type = v1alpha1.IngressHostsAsSource
	s.input(s.request())
	for _, request := range s.TakeRequests() {
		if strings.Contains(request, "routes") || strings.Contains(request, "gateways") || strings.Contains(request, "referencegrants") {
			t.Errorf("unexpected request: %s", request)
		}
	}
	route := environmenttest.Object(t,
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop-alice}}")
	err := s.copies.Put(t.Context(), copies.Environment{UID: s.environment.UID}, copies.Change{
		Revision: 1, Applied: []*unstructured.Unstructured{route},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "the API server does not serve HTTPRoute.gateway.networking.k8s.io now, of which the environment has web: " +
		"install the definition, or set spec.adapt.ingressHosts.type to Omit"
	if _, err := s.read(s.request()); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error = %v", err)
	}
	s.environment.Spec.Adapt.IngressHosts.Type = v1alpha1.IngressHostsOmit
	s.input(s.request())
}

func TestWhatCannotBeRead(t *testing.T) {
	forbidden := environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	// This is the response of a proxy, not of a Kubernetes API.
	proxy := &metav1.Status{Code: http.StatusNotFound}
	for request, tt := range map[string]struct {
		answer *metav1.Status
		want   string
	}{
		"GET production/secrets/registry":    {forbidden, "read Secret registry in production: no"},
		"GET production/configmaps/settings": {proxy, "read ConfigMap settings in production: "},
		"GET production/services":            {forbidden, "list services in production: no"},
		"GET production/ingresses":           {proxy, "list ingresses.networking.k8s.io in production: "},
		"GET shop-alice/secrets":             {forbidden, "list secrets in shop-alice: no"},
		"GET shop-alice/deployments":         {forbidden, "list deployments.apps in shop-alice: no"},
		"GET shop-alice/configmaps/settings": {proxy, "read ConfigMap settings in shop-alice: "},
	} {
		t.Run(request, func(t *testing.T) {
			s := shop(t)
			s.Answer(func(made string) *metav1.Status {
				if made == request {
					return tt.answer
				}
				return nil
			})
			_, err := s.read(s.request())
			if err == nil || !strings.HasPrefix(err.Error(), "read what environment teams/alice is made of: "+tt.want) {
				t.Errorf("%v", err)
			}
			if tt.answer == forbidden && !apierrors.IsForbidden(err) {
				t.Errorf("not forbidden: %v", err)
			}
		})
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	for resource, want := range map[string]string{
		"appcatalogs": "read AppCatalog teams/shop", "catalogworkloads": "list CatalogWorkloads in teams",
		"environments": "list Environments in teams", "environmentdependencies": "list EnvironmentDependencies in teams",
	} {
		t.Run(resource, func(t *testing.T) {
			s := shop(t)
			s.api.Client.PrependReactor("*", resource, func(clienttesting.Action) (bool, apiruntime.Object, error) {
				return true, nil, errors.New("the store is closed")
			})
			if _, err := s.read(s.request()); err == nil || !strings.Contains(err.Error(), want+": the store is closed") {
				t.Errorf("%v", err)
			}
		})
	}
}
