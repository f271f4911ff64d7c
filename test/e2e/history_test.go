// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestHistory gets objects back with the plugin.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{})
	for _, step := range []struct {
		name string
		do   func(*testing.T, *shop)
	}{
		{"Namespace", restoresNamespace},
		{"Immutable", restoresImmutable},
		{"NodePort", recreatesNodePort},
		{"ChangeInBetween", refusesChangeInBetween},
		{"Definition", restoresDefinition},
		{"Undo", undoesChanges},
		{"Secrets", restoresSecrets},
		{"Ignored", keepsIgnored},
		{"MCP", servesMCP},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, newShop(t, s, strings.ToLower(step.name))) })
	}
}

// shop is a namespace whose objects are mirrored, with the clients of the administrator.
type shop struct {
	*mirror
	client  kubernetes.Interface
	changes versioned.Interface
	// server is the address that the plugin uses, empty for that of the kubeconfig.
	server string
}

func newShop(t *testing.T, s *testCluster, namespace string) *shop {
	t.Helper()
	m := s.newMirror(t, namespace)
	m.Watch(t, "all", "configmaps", "secrets", "services", "serviceaccounts", "deployments")
	return &shop{
		mirror: m, client: mirrortest.Client(t, s.Admin()), changes: mirrortest.ClientOf(t, s.Admin(), versioned.NewForConfig),
	}
}

// plugin runs the plugin in the namespace, which must end with an exit code, and returns what it prints.
func (s *shop) plugin(t *testing.T, code int, args ...string) string {
	t.Helper()
	streams, _, out, notes := genericiooptions.NewTestIOStreams()
	command := app.NewCommand(streams)
	args = append(args, "-n", s.Namespace, "--kubeconfig", string(s.Admin()), "--cache-dir", t.TempDir())
	if s.server != "" {
		args = append(args, "--server", s.server)
	}
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if app.ExitCode(err) != code {
		t.Fatalf("%q exits with %d, want %d: %v\n%s%s", args, app.ExitCode(err), code, err, out, notes)
	}
	return fmt.Sprint(out, notes, err)
}

// tip waits until everything is pushed, and returns the commit.
func (s *shop) tip(t *testing.T) string {
	t.Helper()
	mirrortest.InSync(t, s.Administrator, s.Namespace, "main")
	out, err := s.Git(t.Context(), "rev-parse", "main")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) putConfigMap(t *testing.T, name string, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := s.client.CoreV1().ConfigMaps(s.Namespace).Update(t.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = s.client.CoreV1().ConfigMaps(s.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
	}
	must(t, err)
}

func (s *shop) putService(t *testing.T, name string, ports ...int32) {
	t.Helper()
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}}}
	for _, port := range ports {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("p%d", port), Port: port, TargetPort: intstr.FromInt32(port),
		})
	}
	_, err := s.client.CoreV1().Services(s.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

// putDeployment creates a Deployment. Its selector cannot be changed.
func (s *shop) putDeployment(t *testing.T, name, image, selector string) {
	t.Helper()
	labels := map[string]string{"app": selector}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
		},
	}}
	_, err := s.client.AppsV1().Deployments(s.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

// contents returns what Git has of each file.
func (s *shop) contents(t *testing.T, commit string) string {
	t.Helper()
	out, err := s.Git(t.Context(), "ls-tree", "-r", commit, s.Folder+"/")
	must(t, err)
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, mirrortest.MarkerPath) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// versions returns the resourceVersions of the objects of the namespace.
func (s *shop) versions(t *testing.T) string {
	t.Helper()
	return s.Run(t, "get", "configmaps,services,serviceaccounts,deployments", "-n", s.Namespace, "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

// restoresNamespace restores 200 objects of which some were changed, deleted and added.
func restoresNamespace(t *testing.T, s *shop) {
	for i := range 120 {
		s.putConfigMap(t, fmt.Sprintf("config-%d", i), map[string]string{"a": "1", "b": "2"})
	}
	for i := range 40 {
		s.putDeployment(t, fmt.Sprintf("web-%d", i), "shop/web:1", "web")
	}
	for i := range 40 {
		s.putService(t, fmt.Sprintf("service-%d", i), 80, 81)
	}
	commit := s.tip(t)
	before := s.contents(t, commit)

	for i := range 20 {
		s.putConfigMap(t, fmt.Sprintf("config-%d", i), map[string]string{"b": "3", "c": "4"})
		must(t, s.client.CoreV1().ConfigMaps(s.Namespace).Delete(t.Context(), fmt.Sprintf("config-%d", 100+i), metav1.DeleteOptions{}))
		s.putConfigMap(t, fmt.Sprintf("later-%d", i), map[string]string{"a": "1"})
		s.Patch(t, s.Namespace, fmt.Sprintf("deployment/web-%d", i), `{"spec":{"replicas":1,"minReadySeconds":7,"paused":true}}`)
		s.Patch(t, s.Namespace, fmt.Sprintf("service/service-%d", i), `{"spec":{"ports":[{"name":"p90","port":90}]}}`)
	}
	must(t, s.client.CoreV1().Services(s.Namespace).Delete(t.Context(), "service-39", metav1.DeleteOptions{}))
	s.tip(t)

	if out := s.plugin(t, 1, "diff", "--from", commit); !strings.Contains(out, "101 of 220 objects differ") {
		t.Errorf("diff printed %s", out[max(0, len(out)-300):])
	}
	out := s.plugin(t, 0, "restore", "--to", commit, "--prune", "--yes")
	if !strings.Contains(out, "60 to update, 21 to create, 20 to delete, 119 unchanged\n") {
		t.Errorf("restore printed %s", out)
	}
	after := s.contents(t, s.tip(t))
	if withoutReasons(t, s, after) != withoutReasons(t, s, before) {
		t.Errorf("the files differ from those at %s", commit)
	}
	versions := s.versions(t)
	if out := s.plugin(t, 0, "restore", "--to", commit, "--prune", "--yes"); !strings.Contains(out, "200 unchanged\n") {
		t.Errorf("the second time, restore printed %s", out)
	}
	if now := s.versions(t); now != versions {
		t.Errorf("the second time, objects were written:\n%s\nbefore\n%s", now, versions)
	}
	if out := s.plugin(t, 0, "diff", "--from", commit); !strings.Contains(out, "No difference in 200 objects") {
		t.Errorf("diff printed %s", out)
	}
}

// withoutReasons returns the contents of files without the annotations that the plugin sets.
func withoutReasons(t *testing.T, s *shop, tree string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(tree) {
		fields := strings.Fields(line)
		content, err := s.Git(t.Context(), "cat-file", "blob", fields[2])
		must(t, err)
		out.WriteString(fields[3] + "\n")
		for text := range strings.Lines(content) {
			if !strings.Contains(text, v1alpha1.AnnotationReason) && !strings.HasPrefix(text, "  annotations:") {
				out.WriteString(text)
			}
		}
	}
	return out.String()
}

// restoresImmutable names a field that cannot be changed, and deletes and creates the object with --recreate.
func restoresImmutable(t *testing.T, s *shop) {
	s.putDeployment(t, "web", "shop/web:1", "one")
	s.putConfigMap(t, "note", map[string]string{"a": "1"})
	commit := s.tip(t)
	must(t, s.client.AppsV1().Deployments(s.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	s.putDeployment(t, "web", "shop/web:1", "two")
	s.putConfigMap(t, "note", map[string]string{"a": "2"})
	s.tip(t)

	out := s.plugin(t, 3, "restore", "--to", commit, "--yes")
	for _, want := range []string{"! Deployment/web\n    refused: spec.selector: ", "--recreate deployments.apps/web deletes and creates it", "ConfigMap/note updated"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := s.plugin(t, 0, "restore", "--to", commit, "--yes", "--recreate", "deployment/web"); !strings.Contains(out, "Deployment/web deleted and created") {
		t.Errorf("restore printed %s", out)
	}
	if selector := s.Field(t, s.Namespace, "deployment/web", "{.spec.selector.matchLabels.app}"); selector != "one" {
		t.Errorf("selector %q", selector)
	}
	if out := s.plugin(t, 0, "restore", "--to", commit, "--yes"); !strings.Contains(out, "2 unchanged") {
		t.Errorf("the second time, restore printed %s", out)
	}
}

// recreatesNodePort deletes and creates a Service with a port that the old one has, and that only one can have.
func recreatesNodePort(t *testing.T, s *shop) {
	service := func(address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80, NodePort: 31234}},
		}}
	}
	created, err := s.client.CoreV1().Services(s.Namespace).Create(t.Context(), service(""), metav1.CreateOptions{})
	must(t, err)
	commit := s.tip(t)
	s.Patch(t, s.Namespace, "service/web", `{"metadata":{"labels":{"a":"b"}}}`)
	s.tip(t)
	if out := s.plugin(t, 0, "restore", "--to", commit, "--yes", "--recreate", "service/web"); !strings.Contains(out, "Service/web deleted and created") {
		t.Errorf("restore printed %s", out)
	}
	now, err := s.client.CoreV1().Services(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if now.UID == created.UID || now.Spec.Ports[0].NodePort != 31234 || len(now.Labels) > 0 {
		t.Errorf("%+v", now)
	}
}

// beforeFirstWrite makes the plugin use a proxy that does something before the first write that is no dry run.
func (s *shop) beforeFirstWrite(t *testing.T, do func(ctx context.Context) error) {
	t.Helper()
	config, err := s.Admin().RESTConfig()
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	target, err := url.Parse(config.Host)
	must(t, err)
	var once sync.Once
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
			once.Do(func() {
				if err := do(r.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.server = server.URL
}

// refusesChangeInBetween changes one of two objects after the preview.
func refusesChangeInBetween(t *testing.T, s *shop) {
	s.putConfigMap(t, "a", map[string]string{"a": "1"})
	s.putConfigMap(t, "b", map[string]string{"a": "1"})
	commit := s.tip(t)
	s.putConfigMap(t, "a", map[string]string{"a": "2"})
	s.putConfigMap(t, "b", map[string]string{"a": "2"})
	s.tip(t)
	s.beforeFirstWrite(t, func(context.Context) error {
		s.putConfigMap(t, "b", map[string]string{"a": "3"})
		return nil
	})
	out := s.plugin(t, 4, "restore", "--to", commit, "--yes")
	if !strings.Contains(out, "ConfigMap/b failed: it has changed since the preview") || !strings.Contains(out, "ConfigMap/a updated") {
		t.Errorf("restore printed %s", out)
	}
	if value := s.Field(t, s.Namespace, "configmap/b", "{.data.a}"); value != "3" {
		t.Errorf("b has %q", value)
	}
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// restoresDefinition restores a definition and an object of it that was deleted with it.
func restoresDefinition(t *testing.T, s *shop) {
	s.Apply(t, gadgets)
	s.HaveCondition(t, "", "Established", "crd/gadgets.example.com")
	s.Patch(t, s.Namespace, "gitdestination/main", `{"spec":{"accessPolicy":{"allowClusterRules":true}}}`)
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: definitions}
spec:
  destinationRef: {name: main, namespace: %[1]s}
  rules:
  - name: all
    apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    scope: Cluster
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: gadgets, namespace: %[1]s}
spec:
  destinationRef: {name: main}
  rules:
  - name: all
    apiGroups: [example.com]
    resources: [gadgets]
---
apiVersion: example.com/v1
kind: Gadget
metadata: {name: one, namespace: %[1]s}
spec: {size: 3}
`, s.Namespace))
	s.Ready(t, "", "clusterwatchrule/definitions")
	s.Ready(t, s.Namespace, "watchrule/gadgets")
	s.Holds(t, "example.com/v1/gadgets/"+s.Namespace+"/one.yaml", "size: 3")
	commit := s.tip(t)
	args := []string{"restore", "crd/gadgets.example.com", "gadgets.example.com/one", "--to", commit, "--yes", "--destination", "main"}
	s.plugin(t, 0, args...)
	s.Delete(t, "", "crd/gadgets.example.com")
	out := s.plugin(t, 0, args...)
	if !strings.Contains(out, "CustomResourceDefinition/gadgets.example.com created\nGadget/one created\n") {
		t.Errorf("restore printed %s", out)
	}
	if size := s.Field(t, s.Namespace, "gadget/one", "{.spec.size}"); size != "3" {
		t.Errorf("size %q", size)
	}
}

// undoesChanges undoes a change, and keeps a later one of another field.
func undoesChanges(t *testing.T, s *shop) {
	s.putConfigMap(t, "note", map[string]string{"color": "red", "size": "1"})
	s.tip(t)
	s.putConfigMap(t, "note", map[string]string{"color": "blue", "size": "1"})
	change := s.change(t, s.tip(t))
	s.putConfigMap(t, "note", map[string]string{"color": "blue", "size": "2"})
	s.tip(t)
	if out := s.plugin(t, 0, "show", change); !strings.Contains(out, "-  color: red\n+  color: blue\n") {
		t.Errorf("show printed %s", out)
	}
	s.plugin(t, 0, "undo", change, "--yes")
	if data := s.Field(t, s.Namespace, "configmap/note", "{.data}"); data != `{"color":"red","size":"2"}` {
		t.Errorf("data %s", data)
	}
	if out := s.plugin(t, 0, "undo", change, "--yes"); !strings.Contains(out, "1 unchanged") {
		t.Errorf("the second time, undo printed %s", out)
	}
	s.putConfigMap(t, "note", map[string]string{"color": "green", "size": "2"})
	later := s.change(t, s.tip(t))
	if out := s.plugin(t, 4, "undo", change, "--yes"); !strings.Contains(out, "/data/color has changed again: change "+later) {
		t.Errorf("undo printed %s", out)
	}
	out := s.plugin(t, 0, "blame", "configmap/note")
	for line, author := range map[string]string{"size: \"2\"": "", "color: green": later} {
		if !strings.Contains(out, line) || author != "" && !strings.Contains(out, "color: green") {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
}

// change returns the name of the only Change of a commit.
func (s *shop) change(t *testing.T, commit string) (name string) {
	t.Helper()
	mirrortest.Eventually(t, "the Change of "+commit, func(ctx context.Context) error {
		list, err := s.changes.ConfigbutlerV1alpha1().Changes(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "commit=" + commit})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d Changes", len(list.Items))
		}
		name = list.Items[0].Name
		return nil
	})
	return name
}

// restoresSecrets restores the values of a Secret, and never what they are masked with.
func restoresSecrets(t *testing.T, s *shop) {
	put := func(value string) {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": value}}
		_, err := s.client.CoreV1().Secrets(s.Namespace).Update(t.Context(), object, metav1.UpdateOptions{})
		if err != nil {
			_, err = s.client.CoreV1().Secrets(s.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		}
		must(t, err)
	}
	put("first one")
	commit := s.tip(t)
	put("other one")
	change := s.change(t, s.tip(t))
	for _, args := range [][]string{{"diff", "--from", commit}, {"show", change}, {"blame", "secret/database"}} {
		code := 0
		if args[0] == "diff" {
			code = 1
		}
		if out := s.plugin(t, code, args...); !strings.Contains(out, "password") || strings.Contains(out, "Zmlyc3Qgb25l") || strings.Contains(out, "first one") {
			t.Errorf("%s printed %s", args[0], out)
		}
	}
	value := func() string {
		secret, err := s.client.CoreV1().Secrets(s.Namespace).Get(t.Context(), "database", metav1.GetOptions{})
		must(t, err)
		return string(secret.Data["password"])
	}
	s.plugin(t, 0, "restore", "secret/database", "--to", commit, "--yes")
	if got := value(); got != "first one" {
		t.Errorf("after the restore: %q", got)
	}
	put("other one")
	s.tip(t)
	s.plugin(t, 0, "undo", change, "--yes")
	if got := value(); got != "first one" {
		t.Errorf("after the undo: %q", got)
	}
}

// keepsIgnored leaves the fields alone that the destination does not mirror.
func keepsIgnored(t *testing.T, s *shop) {
	s.Patch(t, s.Namespace, "gitdestination/main", `{"spec":{"ignore":[{"fields":["/spec/replicas"]},{"managers":["scaler"]}]}}`)
	s.Ready(t, s.Namespace, "gitdestination/main")
	s.putDeployment(t, "web", "shop/web:1", "web")
	commit := s.tip(t)
	creation := s.change(t, commit)
	scale := func(patch string) {
		_, err := s.client.AppsV1().Deployments(s.Namespace).Patch(
			t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "scaler"})
		must(t, err)
	}
	scale(`{"metadata":{"annotations":{"example.com/load":"high"}},"spec":{"replicas":4}}`)
	if out := s.plugin(t, 0, "diff", "--from", commit); !strings.Contains(out, "No difference in 1 objects") {
		t.Errorf("diff printed %s", out)
	}
	s.Patch(t, s.Namespace, "deployment/web", `{"spec":{"minReadySeconds":7}}`)
	change := s.change(t, s.tip(t))
	s.beforeFirstWrite(t, func(context.Context) error {
		scale(`{"spec":{"replicas":5}}`)
		return nil
	})
	if out := s.plugin(t, 0, "restore", "--to", commit, "--yes"); strings.Contains(out, "/spec/replicas") {
		t.Errorf("restore printed %s", out)
	}
	const fields = "{.spec.replicas} {.spec.minReadySeconds} {.metadata.annotations.example\\.com/load}"
	if got := strings.TrimSpace(s.Field(t, s.Namespace, "deployment/web", fields)); got != "5  high" {
		t.Errorf("after the restore: %q", got)
	}
	s.Patch(t, s.Namespace, "deployment/web", `{"spec":{"minReadySeconds":7}}`)
	s.tip(t)
	s.plugin(t, 0, "undo", change, "--yes")
	if got := strings.TrimSpace(s.Field(t, s.Namespace, "deployment/web", fields)); got != "5  high" {
		t.Errorf("after the undo: %q", got)
	}
	s.plugin(t, 0, "undo", creation, "--yes")
	if _, err := s.client.AppsV1().Deployments(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the undo of the creation: %v", err)
	}
}
